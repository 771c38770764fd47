"""The Python blocks of the README and the documentation run, and print what they say.

The blocks of one file share their names. An output is written as in a doctest (``>>>``), or as a
comment behind an expression: ``recos.cos(u, v)  # 0.98``. Numbers are compared to the digits that
are written. A block that imports an array library that is not installed is skipped.
"""

import ast
import contextlib
import doctest
import io
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))
import metrics_table  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
DECIMAL = re.compile(r"-?\d+\.(\d+)")
OPTIONAL = {"cupy", "faiss", "ir_measures", "jax", "torch", "usearch"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_blocks(page, subtests, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, names = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        with subtests.test(line=line + 1):
            run = run_session if ">>>" in block[1] else run_script
            try:
                run(block[1], names, page, line)
            except ModuleNotFoundError as error:
                if error.name not in OPTIONAL:
                    raise
                pytest.skip(f"needs {error.name}")


@pytest.mark.parametrize("page", metrics_table.PAGES, ids=lambda page: page.name)
def test_table_of_similarities_is_that_of_the_registry(page):
    assert page.read_text(encoding="utf-8") == metrics_table.written(page)


class Checker(doctest.OutputChecker):
    """Compare decimal numbers to the digits that are written."""

    def check_output(self, want, got, optionflags):
        written = DECIMAL.findall(want)
        if len(written) == len(DECIMAL.findall(got)):
            digits = iter(written)
            got = DECIMAL.sub(lambda found: f"{float(found[0]):.{len(next(digits))}f}", got)
        return super().check_output(want, got, optionflags)


def run_session(source, names, page, line):
    """Run a block written as an interactive session; raise at the first difference."""
    test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line)
    test.globs = names  # instead of a copy
    try:
        doctest.DebugRunner(Checker(), optionflags=FLAGS).run(test, clear_globs=False)
    except doctest.UnexpectedException as error:
        raise error.exc_info[1] from None
    except doctest.DocTestFailure as error:
        place = f"{page.name}:{line + error.example.lineno + 1}"
        pytest.fail(f"{place} says {error.example.want!r}, but the output is {error.got!r}")


def run_script(source, names, page, line):
    """Run a block statement by statement; compare expressions with the comment behind them."""
    source = "\n" * line + source  # line numbers are those of the page
    for statement in ast.parse(source, page).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), page, "exec"), names)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
        got = printed.getvalue() if value is None else f"{value}\n"
        behind = source.splitlines()[statement.end_lineno - 1].encode()[statement.end_col_offset :]
        want = behind.decode().partition("#")[2].strip()
        assert not want or Checker().check_output(want + "\n", got, FLAGS), (
            f"{page.name}:{statement.end_lineno} says {want!r}, but the output is {got!r}"
        )
