"""What a saved index takes on disk beside the vectors; writes results/storage.json."""

import tempfile
from pathlib import Path

import numpy as np
from harness import save

import recos

ROWS = 20_000
WIDTHS = (64, 100, 128, 200, 256, 384, 768, 1024)
SIZES = {"float32": 4, "float16": 2, "int8": 1}


def main() -> None:
    """Save an index of each kind and say how much larger it is than its vectors."""
    found = {}
    for width in WIDTHS:
        X = np.random.default_rng(0).standard_normal((ROWS, width), dtype=np.float32)
        for dtype, size in SIZES.items():
            share = saved_bytes(recos.Index(X, dtype=dtype)) / (ROWS * width * size) - 1
            found[f"{dtype}, {width} numbers"] = round(share, 4)
            print(f"{dtype}, {width} numbers: {share:.1%} beside the vectors", flush=True)
    save("storage", found)


def saved_bytes(index: recos.Index) -> int:
    """Return the bytes of what grows with the rows: the basis does not."""
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        files = {path.name: path.stat().st_size for path in Path(folder).glob("*.npy")}
    return sum(size for name, size in files.items() if not name.endswith(("even.npy", "odd.npy")))


if __name__ == "__main__":
    main()
