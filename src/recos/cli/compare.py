"""``recos compare``, which compares similarities, and ``recos report``, which shows it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from recos.cli.commands import AsJson, Quiet, app

if TYPE_CHECKING:
    from recos.evaluate.results import Comparison


@app.command("compare")
def compare_variants(
    encoders: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models by name or path, or files of vectors (.npy, .parquet, .safetensors); by "
            "default the small encoder of the package.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        str,
        typer.Option(
            help="sts, names such as STS12,SICK-R, or files and folders of your own, with commas."
        ),
    ] = "default",
    variants: Annotated[
        str,
        typer.Option(help="Such as recos,center+cos,whiten+cos; or the sets default and paper."),
    ] = "default",
    baseline: Annotated[str, typer.Option(help="What the others are compared with.")] = "cos",
    corpus: Annotated[
        Path | None,
        typer.Option(help="Texts that transforms learn from, one a line.", show_default=False),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Where models run, such as cuda.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the report.")] = Path(
        "recos-compare"
    ),
    resume: Annotated[
        bool, typer.Option("--resume", help="Take up what an earlier run into the folder finished.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the bootstraps.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, help="How many each bootstrap draws.")] = 2000,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say which similarity ranks best here, by how much, and whether that is real.

    Without arguments it needs no network: a small encoder and pairs come with the package.
    """
    from recos.evaluate.compare import compare  # noqa: PLC0415 - loads SciPy
    from recos.evaluate.report import write_report  # noqa: PLC0415

    comparison = compare(
        encoders or None,
        _split(tasks),
        variants=variants.split(","),
        baseline=baseline, corpus=corpus, device=device, out=out, resume=resume, seed=seed,
        resamples=resamples, progress=False if quiet else None,
    )  # fmt: skip
    _deliver(comparison, write_report(comparison, out), as_json, quiet)


@app.command("report")
def write_again(
    results: Annotated[Path, typer.Argument(help="A results.json of recos compare.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="By default beside it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of an earlier comparison again."""
    from recos.evaluate.report import write_report  # noqa: PLC0415
    from recos.evaluate.results import Comparison  # noqa: PLC0415

    comparison = Comparison.load(results)
    _deliver(comparison, write_report(comparison, out or results.parent), as_json, quiet)


def _split(tasks: str) -> list[str]:
    """Return names that commas separate; a path that has a comma stays whole."""
    return [tasks] if Path(tasks).exists() else [name.strip() for name in tasks.split(",")]


def _deliver(comparison: Comparison, files: list[Path], as_json: bool, quiet: bool) -> None:
    from recos.evaluate.report.terminal import show  # noqa: PLC0415

    if as_json:
        typer.echo(json.dumps(comparison.to_json(), ensure_ascii=False))
    elif not quiet:
        show(comparison, Console(markup=False, highlight=False, file=sys.stdout))
        beside = ", ".join(path.name for path in files[1:])
        typer.echo(f"\nReport: {files[0]}\nNumbers: {beside} beside it")
