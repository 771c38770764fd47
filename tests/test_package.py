"""What importing the package gives, and what it leaves alone."""

import json
import re
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path
from types import ModuleType

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
    "jax",
    "numba",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "torch",
}


def test_importing_loads_numpy_and_nothing_heavy():
    loaded = modules_after("import recos")
    assert "numpy" in loaded
    assert loaded & HEAVY == set()
    assert "recos._kernels" not in loaded


def test_a_handful_of_vectors_loads_nothing_heavy():
    loaded = modules_after(
        "import recos\n"
        "for metric in recos.METRICS.values(): metric.function([1.0, 2.0], [[2.0, 1.0]] * 100)\n"
        "recos.bounds([1, 2], [3, 4])\n"
        "recos.similar([1, 2], [3, 4]), recos.discordant([1, 2], [3, 4])\n"
        "recos.concordance([1, 2], [3, 4])\n"
    )
    assert loaded & HEAVY == set()


def test_pairs_of_numpy_rows_load_no_other_array_library():
    loaded = modules_after("import recos; recos.pairwise([[1.0, 2.0]] * 3)")
    assert "numba" in loaded
    assert loaded & {"cupy", "jax", "sklearn", "torch"} == set()


def test_all_names_are_there_once_and_documented():
    assert len(set(recos.__all__)) == len(recos.__all__)
    for name in recos.__all__:
        assert getattr(recos, name).__doc__, name


def test_every_public_name_is_exported():
    public = {
        name
        for name, value in vars(recos).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(recos.__all__)


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
