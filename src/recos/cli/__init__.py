"""The command line: ``recos index``, ``search``, ``pairs``, ``diagnose``, ``compare``, ``paper``.

``commands`` and ``compare`` talk to the terminal; ``tables`` reads and writes files;
``paper`` lays out figures.
"""

import sys


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    try:
        from recos.cli import commands, compare  # noqa: F401, PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"recos: {error.name} is not installed: pip install 'recos[cli]'", file=sys.stderr)
        sys.exit(2)
    commands.app(prog_name="recos")
