"""What becomes of a saved index: every bit flipped, every cut, and 200 killed writers.

Writes results/damage.json.
"""

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import save

import recos
from recos import _files

KILLS = 200
ROWS, MORE, WIDTH = 500, 250, 16
KINDS = {
    "float32": {"dtype": "float32"},
    "float16": {"dtype": "float16"},
    "int8": {"dtype": "int8"},
    "int8 beside float32": {"dtype": "int8", "keep": True},
}


def main() -> None:
    """Measure everything and save it."""
    with tempfile.TemporaryDirectory() as folder:
        results = {name: damage(Path(folder) / name, options) for name, options in KINDS.items()}
        print(results, flush=True)
        killed = kill(Path(folder) / "killed")
        print(killed, flush=True)
    save("damage", {"damage": results, "kills": killed})


def damage(folder: Path, options: dict) -> dict[str, int]:
    """Flip every bit of every file of a small index, and cut every file at every length."""
    index = recos.Index(rows_of(0, 6, 5), ids=list("abcdef"), **options)
    index.remove(["b"])
    index.save(folder)
    found = {"flipped": 0, "flips not found": 0, "cuts": 0, "cuts not found": 0}
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for bit in range(8 * len(whole)):
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            found["flipped"] += 1
            found["flips not found"] += not is_refused(folder)
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            found["cuts"] += 1
            found["cuts not found"] += not is_refused(folder)
        path.write_bytes(whole)
    assert not is_refused(folder)
    return found


def is_refused(folder: Path) -> bool:
    """Return whether loading or verifying an index raises an error."""
    try:
        recos.Index.load(folder).verify()
    except (ValueError, OSError):
        return True
    return False


def rows_of(start: int, count: int, width: int = WIDTH) -> np.ndarray:
    """Return rows, each made of its number alone."""
    return np.stack(
        [
            np.random.default_rng(number).standard_normal(width, dtype=np.float32)
            for number in range(start, start + count)
        ]
    )


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from damage import MORE, ROWS, rows_of
import recos
folder, state = sys.argv[1], int(sys.argv[3])
index = recos.Index.load(folder)
print(state, flush=True)
while True:
    index.add(rows_of(index._next_id, MORE))
    index.remove(index.ids[:MORE // 5])
    index.save(folder)
    state += 1
    print(state, flush=True)
"""


def kill(folder: Path) -> dict[str, int]:
    """Kill processes that add, remove and save at random times, and look at what is left."""
    recos.Index(rows_of(0, ROWS)).save(folder)
    moment, state = random.Random(0), 0
    found = {"kills": KILLS, "before": 0, "after": 0, "neither": 0, "with files half written": 0}
    for _ in range(KILLS):
        arguments = [sys.executable, "-c", WRITER, folder, Path(__file__).parent, str(state)]
        writer = subprocess.Popen(list(map(str, arguments)), stdout=subprocess.PIPE)
        writer.stdout.readline()
        state = int(writer.stdout.readline())  # it has begun: kernels are loaded
        time.sleep(moment.uniform(0, 0.1))
        writer.send_signal(signal.SIGKILL)
        told = writer.stdout.read().split()
        writer.wait()
        state = int(told[-1]) if told else state
        content = _files.read_manifest(folder)
        used = {entry["file"] for entry in _files.files_in(content)} | {_files.MANIFEST}
        found["with files half written"] += any(x.name not in used for x in folder.iterdir())
        which = state_of(folder)
        name = {state: "before", state + 1: "after"}.get(which, "neither")
        found[name] += 1
        state = state if which is None else which
        if state > 60:
            shutil.rmtree(folder)
            recos.Index(rows_of(0, ROWS)).save(folder)
            state = 0
    return found


def state_of(folder: Path) -> int | None:
    """Return how many times an index was changed, or None if it holds anything else."""
    index = recos.Index.load(folder)
    index.verify()
    state, rest = divmod(index._next_id - ROWS, MORE)
    ids = np.arange(state * (MORE // 5), ROWS + state * MORE)
    if rest or not np.array_equal(index.ids, ids):
        return None
    some = ids[:: max(1, len(ids) // 20)]
    rows = np.concatenate([rows_of(int(i), 1) for i in some])
    return state if np.array_equal(index.search(rows, 1, where=ids).indices[:, 0], some) else None


if __name__ == "__main__":
    main()
