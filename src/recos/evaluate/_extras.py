"""Libraries of the extra ``compare``, imported where they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a module that the extra brings, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{error.name} is not installed: pip install 'recos[compare]'", name=error.name
        ) from None
