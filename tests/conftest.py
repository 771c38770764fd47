"""Settings and fixtures that several test files share."""

import importlib.util
import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("repository", deadline=None, max_examples=60, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repository"))


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


class Library:
    """One array library: how to make an array of it, and how to look at one."""

    def __init__(self, name, *, device=None):
        self.name, self.device = name, device

    def __repr__(self):
        return self.name if self.device is None else f"{self.name}-{self.device}"

    @property
    def module(self):
        return pytest.importorskip("jax.numpy" if self.name == "jax" else self.name)

    def array(self, values, dtype=None):
        """Make an array; ``dtype`` is the name of one."""
        chosen = None if dtype is None else getattr(self.module, dtype)
        if self.name == "torch":
            return self.module.asarray(values, dtype=chosen, device=self.device)
        return self.module.asarray(values, dtype=chosen)

    def owns(self, x):
        """Whether ``x`` is an array of this library on its device; NumPy scalars count."""
        if self.name == "numpy":
            return isinstance(x, (np.ndarray, np.generic))
        if self.name == "torch":
            return isinstance(x, self.module.Tensor) and x.device.type == (self.device or "cpu")
        return isinstance(x, type(self.array([0.0])))

    @staticmethod
    def dtype_of(x):
        return str(x.dtype).rpartition(".")[2]

    def numpy(self, x):
        """Copy an array of this library to NumPy float64 (or bool)."""
        if self.name == "torch":
            x = x.detach().cpu()
            x = x if x.dtype == self.module.bool else x.double()
        elif self.name == "cupy":
            x = x.get()
        x = np.asarray(x)
        return x if x.dtype == bool else x.astype(np.float64)


LIBRARIES = [
    pytest.param(Library("numpy"), id="numpy"),
    pytest.param(Library("array_api_strict"), id="array_api_strict"),
    pytest.param(Library("torch"), id="torch"),
    pytest.param(Library("jax"), id="jax"),
    pytest.param(Library("torch", device="cuda"), id="torch-cuda", marks=pytest.mark.gpu),
    pytest.param(Library("cupy"), id="cupy", marks=pytest.mark.gpu),
]


def gpu_is_missing():
    if importlib.util.find_spec("torch") is not None:
        import torch

        return not torch.cuda.is_available()
    if importlib.util.find_spec("cupy") is not None:
        import cupy

        return not cupy.cuda.is_available()
    return True


def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and gpu_is_missing():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(params=LIBRARIES)
def xp(request):
    """Each array library in turn; one that is not installed is skipped, with that reason."""
    library = request.param
    assert library.module is not None
    return library


@pytest.fixture
def x64():
    """Let JAX make 64-bit arrays, where JAX is installed."""
    if importlib.util.find_spec("jax") is None:
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
