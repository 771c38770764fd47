"""What users type, and what they read on the terminal."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid
from typer.core import TyperGroup

import recos
from recos import _files
from recos.cli.tables import Block, Table, TableFile, Vectors, open_vectors, records
from recos.index import DTYPES


class _Commands(TyperGroup):
    """Commands whose errors are one line, and which leave with 1, or 130 where interrupted."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("recos: interrupted", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            where = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
            text = error.strerror if where and isinstance(error, OSError) else str(error)
            clear = "\r\033[K" if sys.stderr.isatty() else ""  # of progress
            told = f"recos: {where}{' '.join(str(text or repr(error)).split())}"
            typer.echo(clear + told, err=True)
            raise typer.Exit(1) from None


def _one_of(names: list[str]) -> Any:
    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"expected one of {', '.join(names)}, got {value!r}")
        return value

    return {"metavar": "|".join(names), "callback": check, "autocompletion": lambda: names}


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
index_app = typer.Typer(no_args_is_help=True, help="Build and look after an index on disk.")
app.add_typer(index_app, name="index")

Source = Annotated[Path, typer.Argument(help=".npy, or .parquet with a column of lists.")]
Folder = Annotated[Path, typer.Argument(help="The folder of the index.")]
Column = Annotated[str | None, typer.Option(help="The parquet column that holds the vectors.")]
Ids = Annotated[
    str | None, typer.Option(help="A parquet column, or a file: .npy, or text with one id a line.")
]
MetricName = Annotated[str, typer.Option(help="The similarity.", **_one_of(list(recos.METRICS)))]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="How rows are stored: float32, unless they are float16.", **_one_of(list(DTYPES))
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write here: .parquet or .jsonl.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recos {recos.__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Exact search by recos, the cosine, decos or tanimoto."""


@index_app.command("build")
def build_index(
    vectors: Source,
    folder: Folder,
    ids: Ids = None,
    column: Column = None,
    metric: MetricName = "recos",
    dtype: Dtype = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="With int8: keep a float32 copy to score with.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an index.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write an index of vectors, which need not fit into memory."""
    if keep and dtype != "int8":
        raise typer.BadParameter("--keep needs --dtype int8: other rows are kept as they are")
    source = open_vectors(vectors, column=column, ids=ids)
    with _writing(folder, replace), _shown(source, "Building", quiet) as blocks:
        recos.Index.build(
            folder,
            (rows if names is None else (names, rows) for names, rows in blocks),
            metric=metric, dtype=dtype, keep=keep,
        )  # fmt: skip
    if as_json or not quiet:
        _print_facts(_facts(folder), as_json)


@index_app.command("info")
def show_index(folder: Folder, as_json: AsJson = False) -> None:
    """Say what an index holds."""
    _print_facts(_facts(folder), as_json)


@index_app.command("verify")
def verify_index(folder: Folder, quiet: Quiet = False) -> None:
    """Read every file of an index and compare it with its checksums."""
    index = recos.Index.load(folder)
    index.verify()
    if not quiet:
        typer.echo(f"{folder}: all {len(index):,} rows are as they were written")


@app.command("search")
def search_index(
    folder: Folder,
    queries: Source,
    k: Annotated[int, typer.Option("-k", min=1, help="How many rows for each query.")] = 10,
    column: Column = None,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the most similar rows of an index for each query, exactly."""
    index, source = recos.Index.load(folder), open_vectors(queries, column=column)

    def tables() -> Iterator[Table]:
        start = 0
        for _, rows in source.blocks():
            scores, found = index.search(rows, k, progress=False if quiet else None)
            query, rank = np.indices(scores.shape)
            yield {
                "query": query.ravel() + start,
                "rank": rank.ravel() + 1,
                "id": found.ravel(),
                "score": scores.ravel(),
            }
            start += len(rows)

    what = {"index": str(folder), "metric": index.metric.name, "queries": source.size, "k": k}
    _deliver(tables(), "hits", what, output, as_json, quiet)


@app.command("pairs")
def find_pairs(
    vectors: Source,
    threshold: Annotated[float | None, typer.Option(help="All pairs that reach it.")] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Each row with its k best.")] = None,
    max_pairs: Annotated[int | None, typer.Option(min=1, help="Keep the best of them.")] = None,
    ids: Ids = None,
    column: Column = None,
    metric: MetricName = "recos",
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the most similar pairs of rows: duplicates, paraphrases."""
    if (threshold is None) == (k is None):
        raise typer.BadParameter("expected exactly one of --threshold and -k")

    def tables() -> Iterator[Table]:
        names, rows = open_vectors(vectors, column=column, ids=ids).whole()
        i, j, scores = recos.mine_pairs(
            rows, threshold=threshold, k=k, max_pairs=max_pairs, metric=metric,
            progress=False if quiet else None,
        )  # fmt: skip
        yield {
            "i": i if names is None else names[i],
            "j": j if names is None else names[j],
            "score": scores,
        }

    what = {"vectors": str(vectors), "metric": metric, "threshold": threshold, "k": k}
    _deliver(tables(), "pairs", what, output, as_json, quiet)


@app.command("paper")
def check_paper(as_json: AsJson = False) -> None:
    """Recompute every figure of the paper from its table of scores."""
    from recos.cli import paper  # noqa: PLC0415 - the other commands need no SciPy

    paper.show(as_json)


@app.command("diagnose")
def diagnose_vectors(
    vectors: Source,
    column: Column = None,
    cosine: Annotated[
        float | None, typer.Option(min=0, max=1, help="A threshold in use: print recos's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what recos and cheap transforms will change on these vectors."""
    try:
        found = recos.diagnose(open_vectors(vectors, column=column).whole()[1])
    except ValueError as error:
        raise ValueError(re.sub("^X:", f"{vectors}:", str(error))) from error
    matched = None if cosine is None else found.recos_threshold(cosine)
    if as_json:
        threshold = {} if matched is None else {"cosine": cosine, "recos_threshold": matched}
        typer.echo(json.dumps({"vectors": str(vectors)} | found.to_dict() | threshold))
        return
    _print_diagnosis(found)
    if matched is not None:
        typer.echo(f"\nas many pairs reach recos {matched:.4f} as reach cosine {cosine}")


def _print_diagnosis(found: recos.Diagnosis) -> None:
    """Print what was measured, what each change should gain, the odd rows, and the advice."""
    for name, text in found.summary().items():
        typer.echo(f"{name:<19}{text}")
    if found.expected:
        typer.echo("\nexpected gain over the cosine, in points of Spearman correlation x 100")
    for name, change in found.expected.items():
        between = f"({change.low:+.1f} to {change.high:+.1f})"
        told = f"{change.points:+5.1f}  {between:<17}".replace("-", "−")
        typer.echo(f"{name:<19}{told}  {change.verdict}")
    if found.odd_rows:
        typer.echo("\n       row  in lists by recos  by the cosine  what")
    for row in found.odd_rows:
        shares = f"{row.recos_lists:>17.1%}  {row.cos_lists:>13.1%}"
        typer.echo(f"{row.row:>10}  {shares}  {row.kind}, norm {row.norm:.3g}")
    typer.echo(f"\n{found.advice}")


@contextmanager
def _writing(folder: Path, replace: bool) -> Iterator[None]:
    """Remove what was written to the folder of an index, if it is not completed."""
    new = not folder.exists()
    _files.make_folder(folder)
    known = (folder / _files.MANIFEST).exists()
    if known and not replace:
        raise FileExistsError(
            f"{folder}: expected a new or empty folder, found an index; choose another folder, or "
            "pass --replace"
        )
    content = _files.read_manifest(folder) if known else {}
    try:
        yield
    except BaseException:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _files.remove_unused(folder, content)
        raise


@contextmanager
def _shown(source: Vectors, label: str, quiet: bool) -> Iterator[Iterator[Block]]:
    """Give the blocks of a file, and show on a terminal how many were taken."""
    if quiet or not sys.stderr.isatty():
        yield source.blocks()
        return
    done = TextColumn("{task.completed:,} of {task.total:,} rows,")
    columns = BarColumn(), TaskProgressColumn(), done, TimeRemainingColumn(), TextColumn("left")
    text = TextColumn("{task.description}")
    with Progress(text, *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=source.size)

        def blocks() -> Iterator[Block]:
            for names, rows in source.blocks():
                yield names, rows
                bar.advance(task, len(rows))

        yield blocks()


def _facts(folder: Path) -> dict[str, Any]:
    index, content = recos.Index.load(folder), _files.read_manifest(folder)
    segments = content["segments"]
    stored = sum(segment["ids"]["shape"][0] for segment in segments)
    texts = any("U" in segment["ids"]["dtype"] for segment in segments)
    return {
        "index": str(folder),
        "rows": len(index),
        "components": index.width,
        "metric": index.metric.name,
        "dtype": index.dtype,
        "scored_as": "float32" if content["keep"] else index.dtype,
        "ids": "texts" if texts else "whole numbers",
        "removed": stored - len(index),
        "segments": len(segments),
        "bytes": sum((folder / file["file"]).stat().st_size for file in _files.files_in(content)),
    }


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for name, value in facts.items():
        text = f"{value:,}" if type(value) is int else str(value)
        typer.echo(f"{name:<12}{text}")


def _deliver(
    tables: Iterator[Table],
    name: str,
    what: dict[str, Any],
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write tables to a file, or print them: a grid on a terminal, else separated by tabs."""
    if output is not None:
        with TableFile(output) as file:
            for table in tables:
                file.write(table)
        if as_json:
            typer.echo(json.dumps(what | {name: file.rows, "output": str(output)}))
        elif not quiet:
            typer.echo(f"{output}: {file.rows:,} {name}", err=True)
    elif as_json:
        typer.echo(json.dumps(what | {name: [row for table in tables for row in records(table)]}))
    elif sys.stdout.isatty():
        for table in tables:
            grid = Grid(*table, box=None)
            for row in records(table):
                grid.add_row(*(_cell(value) for value in row.values()))
            Console(markup=False, highlight=False).print(grid)
    else:
        for number, table in enumerate(tables):
            if not number:
                typer.echo("\t".join(table))
            for row in records(table):
                typer.echo("\t".join(map(str, row.values())))


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
