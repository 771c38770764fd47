"""The code that the paper prints (appendix, arXiv:2602.05266), and as it runs over many pairs."""

import numpy as np


def recos(e1, e2):
    """Return recos of two vectors."""
    e1, e2 = e1.astype(np.float32), e2.astype(np.float32)
    e1_asc, e1_desc = np.sort(e1), np.flip(np.sort(e1), axis=-1)
    e2_asc = np.sort(e2)
    dot = np.sum(e1 * e2, axis=-1)
    dot_aa = np.sum(e1_asc * e2_asc, axis=-1)
    dot_ad = np.sum(e1_desc * e2_asc, axis=-1)
    dot_aa = np.where(dot_aa == 0, 1e-6, dot_aa)
    dot_ad = np.where(dot_ad == 0, 1e-6, dot_ad)
    sim = np.where(dot >= 0, dot / abs(dot_aa), dot / abs(dot_ad))
    return np.clip(sim, -1.0, 1.0)


def loop(X, Y):
    """Return recos of aligned rows, one call a pair."""
    return np.array([recos(x, y) for x, y in zip(X, Y, strict=True)])


def broadcast(X, Y):
    """Return recos of all pairs; the sums along the last axis are the only thing mended above."""
    return np.stack([recos(x[None, :], Y) for x in X])
