"""Does another similarity rank better than cosine here, by how much, and is that real?"""
