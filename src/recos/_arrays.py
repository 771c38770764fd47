"""What comes in and what goes out: array kinds, dtypes, shapes, finite values.

Everything above this file computes on real floating arrays of one namespace ``xp`` (the Python
array API standard), with the compared axis last. Arrays that lie in host memory and need no
gradient are read as NumPy arrays, whatever library they come from: NumPy sorts several times
faster than PyTorch and JAX do on a CPU.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

Array = Any  # an array of any library that follows the Python array API standard


class Inputs(NamedTuple):
    """Arrays ready to compute with: ``dtype`` to compute in, ``home`` to go back to."""

    xp: Any
    arrays: tuple[Array, ...]
    dtype: Any
    names: tuple[str, ...]
    home: Home

    def give_back(self, result: Array) -> Array:
        """Return a result in the kind, device and floating family of the inputs."""
        return self.home.receive(self.xp, result, self.home.dtype)

    def give_back_bool(self, result: Array) -> Array:
        """Return a boolean result in the kind and on the device of the inputs."""
        return self.home.receive(self.xp, result, self.home.xp.bool)


class Home(NamedTuple):
    """Where the inputs came from: their namespace, device and result dtype."""

    xp: Any
    device: Any
    dtype: Any

    def receive(self, xp: Any, result: Array, dtype: Any) -> Array:
        """Bring ``result``, an array of ``xp``, home."""
        if xp is np and self.xp is not np:
            result = self.xp.asarray(result, device=self.device)
        result = cast(self.xp, result, dtype)
        return result[()] if self.xp is np else result  # [()] makes a scalar of a 0-d array


def read(*values: Any, names: tuple[str, ...], axis: int = -1) -> Inputs:
    """Check ``values`` and bring them to one namespace, the compared axis last."""
    xp, arrays, device = _one_kind(values, names)
    dtype, result_dtype = _dtypes(xp, arrays, names)
    arrays = [_axis_last(xp, x, axis, name) for x, name in zip(arrays, names, strict=True)]
    length = arrays[0].shape[-1]
    for x, name in zip(arrays, names, strict=True):
        if x.shape[-1] != length:
            raise ValueError(
                f"{names[0]} and {name}: expected vectors of the same length, got {length} and "
                f"{x.shape[-1]} (shapes {tuple(arrays[0].shape)} and {tuple(x.shape)}); compare "
                "vectors that one model made"
            )
    home = Home(xp, device, result_dtype)
    if xp is not np and all(_is_on_host(x) for x in arrays):
        return on_host(Inputs(xp, tuple(arrays), dtype, names, home))
    return Inputs(xp, tuple(arrays), dtype, names, home)


def on_host(given: Inputs) -> Inputs:
    """Return the same inputs as NumPy arrays; gradients are not followed."""
    if given.xp is np:
        return given
    wide = given.home.xp.finfo(given.dtype).bits == 64
    arrays = tuple(to_numpy(x) for x in given.arrays)
    return given._replace(xp=np, arrays=arrays, dtype=np.dtype(np.float64 if wide else np.float32))


def cast(xp: Any, x: Array, dtype: Any) -> Array:
    """Return ``x`` with another dtype, itself where it has that dtype already."""
    if xp is np:  # numpy.astype came with NumPy 2.1
        return x.astype(dtype, copy=False)
    return xp.astype(x, dtype, copy=False)


def replaced(xp: Any, x: Array, where: Array, values: Array) -> Array:
    """Return ``x`` with other values where a mask says so."""
    if xp.__name__.startswith("jax"):
        return x.at[where].set(values)
    x = x + 0  # a copy that gradients pass through
    x[where] = values
    return x


def has_float64(xp: Any, x: Array) -> bool:
    """Whether the library computes in float64 where ``x`` lies."""
    if xp.__name__.endswith("torch"):
        return str(x.device.type) != "mps"
    return not _lacks_float64(xp)


def check_finite(xp: Any, scale: Array, name: str, first_row: int = 0) -> None:
    """Raise if a row is not finite, which its scale tells (see ``_terms.scaled``)."""
    finite = xp.isfinite(scale)
    if not is_concrete(finite) or bool(xp.all(finite)):
        return
    where = "" if scale.ndim == 0 else f" in row {_first_false(xp, finite) + first_row}"
    raise ValueError(
        f"{name}: expected finite numbers, got NaN or infinity{where}; find such rows with "
        f"~isfinite({name}).all(axis=-1), then drop or mend them"
    )


def _first_false(xp: Any, flags: Array) -> int:
    return int(xp.argmin(cast(xp, xp.reshape(flags, (-1,)), xp.int8)))


def full_precision(xp: Any, x: Array) -> AbstractContextManager[Any]:
    """Keep products in the dtype of their factors, where a library would round them first.

    JAX multiplies float32 with fewer digits on GPUs and TPUs unless told not to, and PyTorch's
    autocast multiplies in half precision.
    """
    library = xp.__name__
    if library.startswith("jax"):
        return sys.modules["jax"].default_matmul_precision("highest")  # type: ignore[no-any-return]
    if library.endswith("torch"):
        return xp.autocast(x.device.type, enabled=False)  # type: ignore[no-any-return]
    return nullcontext()


def to_numpy(x: Array) -> np.ndarray:
    """Copy an array of any library to host memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        x = x.float() if x.dtype == torch.bfloat16 else x  # NumPy has no bfloat16
    elif hasattr(x, "get"):  # CuPy
        x = x.get()
    host: np.ndarray = np.asarray(x)
    return host


def _one_kind(values: tuple[Any, ...], names: tuple[str, ...]) -> tuple[Any, list[Array], Any]:
    foreign = [value for value in values if _is_foreign(value)]
    if not foreign:
        arrays = [_as_numpy(value, name) for value, name in zip(values, names, strict=True)]
        return np, _lists_follow(np, values, arrays), None
    from array_api_compat import array_namespace, device  # noqa: PLC0415 - keeps start-up short

    kinds = {type(value).__module__.partition(".")[0].replace("jaxlib", "jax") for value in foreign}
    kinds |= {"numpy" for value in values if isinstance(value, np.ndarray)}
    # A value that JAX traces has no device yet.
    places = {str(device(value)) for value in foreign} - {"None"}
    for what, found in (("array kind", kinds), ("device", places)):
        if len(found) > 1:
            error = TypeError if what == "array kind" else ValueError
            raise error(
                f"{' and '.join(names)}: expected arrays of one {what}, got "
                f"{' and '.join(sorted(found))}; convert one to the other's"
            )
    xp, place = array_namespace(*foreign), device(foreign[0])
    arrays = [
        v if _is_foreign(v) else xp.asarray(_as_numpy(v, name), device=place)
        for v, name in zip(values, names, strict=True)
    ]
    return xp, _lists_follow(xp, values, arrays), place


def _lists_follow(xp: Any, values: tuple[Any, ...], arrays: list[Array]) -> list[Array]:
    """Return the arrays, those made of lists in the floating dtype of the others."""
    listed = [isinstance(value, (list, tuple, int, float)) for value in values]
    floats = [
        x.dtype for x, own in zip(arrays, listed, strict=True) if not own and _is_float(xp, x)
    ]
    if not floats:
        return arrays
    return [
        cast(xp, x, floats[0]) if own and x.dtype != floats[0] else x
        for x, own in zip(arrays, listed, strict=True)
    ]


def _is_float(xp: Any, x: Array) -> bool:
    return _is_bfloat16(x.dtype) or bool(xp.isdtype(x.dtype, "real floating"))


def _is_foreign(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic, list, tuple, int, float)):
        return False
    from array_api_compat import is_array_api_obj  # noqa: PLC0415 - keeps start-up short

    return bool(is_array_api_obj(value))


def _as_numpy(value: Any, name: str) -> np.ndarray:
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except (BufferError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name}: expected an array, or lists of one length, got {type(value).__name__} that "
            f"NumPy cannot read ({error})"
        ) from error


def _dtypes(xp: Any, arrays: list[Array], names: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the dtype to compute in (32 bits or more) and that of the result."""
    floats = [_floating_family(xp, x.dtype, name) for x, name in zip(arrays, names, strict=True)]
    result = floats[0] if all(x == floats[0] for x in floats) else xp.result_type(*floats)
    narrow = _is_bfloat16(result) or xp.finfo(result).bits < 32
    return (xp.float32 if narrow else result), result


def _floating_family(xp: Any, dtype: Any, name: str) -> Any:
    if xp is np:
        dtype = dtype.newbyteorder("=")
    if _is_bfloat16(dtype):
        return dtype
    if xp.isdtype(dtype, "real floating") and xp.finfo(dtype).bits <= 64:
        return dtype
    if xp.isdtype(dtype, "bool"):
        return xp.float32
    if xp.isdtype(dtype, "integral"):
        small = xp.iinfo(dtype).bits <= 16  # float32 holds these exactly
        return xp.float32 if small or _lacks_float64(xp) else xp.float64
    raise TypeError(
        f"{name}: expected real numbers (float16, bfloat16, float32, float64, integers or bool), "
        f"got dtype {dtype}"
    )


def _is_bfloat16(dtype: Any) -> bool:
    """Whether this is a dtype that is not in the standard; NumPy has it from ml_dtypes."""
    return str(dtype).endswith("bfloat16")


def _lacks_float64(xp: Any) -> bool:
    return bool(xp.__name__.startswith("jax") and not sys.modules["jax"].config.jax_enable_x64)


def _axis_last(xp: Any, x: Array, axis: int, name: str) -> Array:
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis: expected a whole number, got {axis!r}")
    if x.ndim == 0 or not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"{name}: expected an array with an axis {axis} to compare along, got shape "
            f"{tuple(x.shape)}"
        )
    x = x if axis in (-1, x.ndim - 1) else xp.moveaxis(x, axis, -1)
    if x.shape[-1] == 0:
        raise ValueError(f"{name}: expected vectors of at least one number, got {tuple(x.shape)}")
    return x


def is_concrete(x: Array) -> bool:
    """Whether the values can be looked at: not while JAX or PyTorch trace a function."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(x, torch.Tensor):
        tracing = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
        return not tracing and type(x) in (torch.Tensor, torch.nn.Parameter)
    return not (jax is not None and isinstance(x, jax.core.Tracer))


def is_plain_on_cuda(given: Inputs) -> bool:
    """Whether the inputs are plain tensors in the memory of a CUDA device, with no gradient."""
    if not given.xp.__name__.endswith("torch"):
        return False
    return all(is_concrete(x) and x.is_cuda and not is_tracked(x) for x in given.arrays)


def is_tracked(x: Array) -> bool:
    """Whether a tensor's gradient is followed."""
    torch = sys.modules["torch"]
    forward = torch.autograd.forward_ad._current_level >= 0
    return bool((x.requires_grad and torch.is_grad_enabled()) or forward)


def _is_on_host(x: Array) -> bool:
    """Whether ``x`` is plain data in host memory, with no gradient to follow."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if not is_concrete(x):
        return False
    if torch is not None and isinstance(x, torch.Tensor):
        return x.device.type == "cpu" and x.layout == torch.strided and not is_tracked(x)
    if jax is not None and isinstance(x, jax.Array):
        return all(device.platform == "cpu" for device in x.devices())
    return False
