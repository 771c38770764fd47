"""What importing the package gives, and what it leaves alone."""

import ast
import json
import re
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path
from textwrap import dedent

import pytest

import recos


def modules_after(code):
    """Return the top-level modules that a fresh interpreter has loaded after running ``code``."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    return set(json.loads(run.stdout.splitlines()[-1]))


HEAVY = {
    "array_api_compat",
    "concurrent.futures",
    "cupy",
    "faiss",
    "jax",
    "numba",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "torch",
    "usearch",
}


def test_importing_loads_nothing_heavy():
    loaded = modules_after("import recos")
    assert loaded & HEAVY == set()
    assert {name for name in loaded if name.startswith("recos")} == {"recos"}


def test_a_handful_of_vectors_loads_nothing_heavy():
    loaded = modules_after(
        "import recos\n"
        "for metric in recos.METRICS.values(): metric.function([1.0, 2.0], [[2.0, 1.0]] * 100)\n"
        "recos.bounds([1, 2], [3, 4])\n"
        "recos.similar([1, 2], [3, 4]), recos.discordant([1, 2], [3, 4])\n"
        "recos.concordance([1, 2], [3, 4])\n"
    )
    assert loaded & HEAVY == set()


def test_statistics_load_nothing_heavy_before_they_are_used():
    loaded = modules_after("import recos.evaluate.published, recos.evaluate.statistics")
    assert loaded & HEAVY == set()


def test_pairs_of_numpy_rows_load_no_other_array_library():
    loaded = modules_after("import recos; recos.pairwise([[1.0, 2.0]] * 3)")
    assert "numba" in loaded
    assert loaded & {"cupy", "jax", "sklearn", "torch"} == set()


def test_all_names_are_there_once_and_documented():
    assert len(set(recos.__all__)) == len(recos.__all__)
    for name in recos.__all__:
        assert getattr(recos, name).__doc__, name


def test_names_for_type_checkers_are_those_of_the_package():
    [typed] = re.findall(
        r"if TYPE_CHECKING:\n((?:    .+\n)+)", Path(recos.__file__).read_text("utf-8")
    )
    names = {alias.name for line in ast.parse(dedent(typed)).body for alias in line.names}
    assert names == set(recos.__all__)
    assert names <= set(dir(recos))


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="module 'recos' has no attribute 'cosine'"):
        _ = recos.cosine


@pytest.mark.parametrize("name", recos.__all__)
def test_public_names_can_be_imported_alone(name):
    names = {}
    exec(f"from recos import {name}", names)
    assert names[name] is getattr(recos, name)


def test_the_package_says_that_it_is_typed():
    assert resources.files("recos").joinpath("py.typed").is_file()


def test_there_is_one_version():
    assert metadata.version("recos") == recos.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", recos.__version__)
    source = Path(recos.__file__).read_text(encoding="utf-8")
    assert source.count(f'"{recos.__version__}"') == 1
