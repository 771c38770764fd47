"""Libraries that are not part of the base package, loaded on first use, and the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


def load(module: str, extra: str = "compare") -> Any:
    """Import a library, or raise an error that says how to install it."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        raise ModuleNotFoundError(
            f"{library} is not installed: pip install 'recos[{extra}]'", name=library
        ) from None


def fetch_dataset(
    repository: str, revision: str | None, patterns: list[str], remedy: str
) -> tuple[Path, str]:
    """Download files of a data set, or find them in the hub's cache.

    Returns
    -------
    folder : pathlib.Path
        The files.
    revision : str
        The commit they belong to.
    """
    hub = load("huggingface_hub")
    with remedied(repository, remedy):
        folder = hub.snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision,
            allow_patterns=patterns,
            local_files_only=not hub_answers(),
        )
    return Path(folder), Path(folder).name


def hub_answers() -> bool:
    """Whether the hub can be reached: asked once, as its own functions try for minutes."""
    session = load("huggingface_hub.utils").get_session()
    try:
        session.head(load("huggingface_hub.constants").ENDPOINT, timeout=10)
    except Exception:  # the kinds differ between its versions
        return False
    return True


@contextmanager
def remedied(repository: str, remedy: str) -> Iterator[None]:
    """Turn the many errors of a hub that is not reached into one that says what to do."""
    try:
        yield
    except (OSError, ValueError) as error:
        found = str(error).strip().partition("\n")[0].rstrip(".")
        reason = (
            "no answer, and not in its cache" if isinstance(error, FileNotFoundError) else found
        )
        raise ConnectionError(
            f"{repository}: could not be read from the Hugging Face hub ({reason}). {remedy}"
        ) from error
