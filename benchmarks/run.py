"""Run all benchmarks, then write their tables into the README and the documentation."""

import advice
import candidates
import compare
import damage
import memory
import precision
import search
import speed
import startup
import tables

if __name__ == "__main__":
    for benchmark in (
        startup,
        precision,
        memory,
        speed,
        search,
        candidates,
        damage,
        advice,
        compare,
    ):
        print(f"{benchmark.__name__}: {benchmark.__doc__.splitlines()[0]}", flush=True)
        benchmark.main()
    tables.main()
