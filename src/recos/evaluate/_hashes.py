"""Hashes of files, texts and arrays: what the cache and the checksums go by."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_hash(*paths: Path) -> str:
    """Return the SHA-256 of the content of files, one after the other."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def text_key(text: str) -> bytes:
    """Return what stands for a text in the cache."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
