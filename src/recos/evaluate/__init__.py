"""Whether another similarity ranks better than cosine, by how much, and whether that is real."""
