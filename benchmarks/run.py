"""Run all benchmarks, then write their tables into the README and the documentation."""

import memory
import precision
import speed
import startup
import tables

if __name__ == "__main__":
    for benchmark in (startup, precision, memory, speed):
        print(f"{benchmark.__name__}: {benchmark.__doc__.splitlines()[0]}", flush=True)
        benchmark.main()
    tables.main()
