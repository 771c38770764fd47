"""The eleven models of the paper: its own checkpoints, and what is known of each.

The checkpoints are those of the paper's table of model specifications, which names some as
ModelScope does; ``repository`` is the same model on the Hugging Face hub. Pooling, dimension,
licence and size are those that the hub, or the page of the word vectors, shows; sizes are of one
copy of the weights.
"""

from typing import NamedTuple


class Model(NamedTuple):
    """A published model; ``repository`` is empty where it is a file of word vectors."""

    checkpoint: str
    repository: str
    pooling: str
    dimension: int
    licence: str
    size: str
    source: str = ""


_AVERAGE = "mean of the vectors of the words; the paper does not say how it averages"
PAPER = {
    "Word2Vec": Model(
        "GoogleNews-vectors-negative300", "", _AVERAGE, 300, "not stated with the vectors",
        "1.65 GB (.bin.gz)", "https://code.google.com/archive/p/word2vec/",
    ),
    "FastText": Model(
        "wiki-news-300d-1M", "", _AVERAGE, 300, "CC BY-SA 3.0", "682 MB (.vec.zip)",
        "https://fasttext.cc/docs/en/english-vectors.html",
    ),
    "GloVe": Model(
        "sentence-transformers/average_word_embeddings_glove.840B.300d",
        "sentence-transformers/average_word_embeddings_glove.840B.300d",
        "mean, without stop words", 300, "Apache-2.0 (the vectors: PDDL)", "2.64 GB",
    ),
    "BERT": Model(
        "sentence-transformers/bert-base-nli-max-tokens",
        "sentence-transformers/bert-base-nli-max-tokens", "max", 768, "Apache-2.0", "438 MB",
    ),
    "SGPT": Model(
        "Ceceliachenen/SGPT-125M-weightedmean-nli-bitfit",
        "Muennighoff/SGPT-125M-weightedmean-nli-bitfit", "mean weighted by position", 768,
        "not stated on its card", "about 0.5 GB (125 million float32)",
    ),
    "DPR": Model(
        "sentence-transformers/facebook-dpr-ctx_encoder-multiset-base",
        "sentence-transformers/facebook-dpr-ctx_encoder-multiset-base", "first token", 768,
        "Apache-2.0 (the original weights: CC BY-NC 4.0)", "438 MB",
    ),
    "E5": Model(
        "intfloat/e5-small-unsupervised", "intfloat/e5-small-unsupervised",
        "mean, normalised", 384, "MIT", "133 MB",
    ),
    "BGE": Model(
        "BAAI/bge-code-v1", "BAAI/bge-code-v1", "last token", 1536, "Apache-2.0",
        "6.18 GB",
    ),
    "GTE": Model(
        "iic/gte-modernbert-base", "Alibaba-NLP/gte-modernbert-base", "first token", 768,
        "Apache-2.0", "298 MB",
    ),
    "SPECTER": Model(
        "sentence-transformers/allenai-specter", "sentence-transformers/allenai-specter",
        "first token", 768, "Apache-2.0", "440 MB",
    ),
    "CLIP-ViT": Model(
        "sentence-transformers/clip-ViT-B-32-multilingual-v1",
        "sentence-transformers/clip-ViT-B-32-multilingual-v1",
        "mean, then a linear map to CLIP's space", 512, "Apache-2.0", "539 MB",
    ),
}  # fmt: skip


def find_model(name: str) -> tuple[str, Model] | None:
    """Return a model of the paper by its name or checkpoint, whatever the case."""
    wanted = name.lower()
    for key, model in PAPER.items():
        if wanted in (key.lower(), model.checkpoint.lower(), model.repository.lower() or None):
            return key, model
    return None
