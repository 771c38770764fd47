"""Libraries of the extra ``compare``, imported where they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a module that the extra brings, or raise an error that says how to install it."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise ModuleNotFoundError(
            f"{library} is not installed: pip install 'recos[compare]'", name=library
        ) from None
