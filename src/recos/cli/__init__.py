"""The command line: ``recos index``, ``search``, ``pairs`` and ``diagnose``.

``commands`` talks to the terminal; ``tables`` reads and writes files.
"""

import sys


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    try:
        from recos.cli.commands import app  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"recos: {error.name} is not installed: pip install 'recos[cli]'", file=sys.stderr)
        sys.exit(2)
    app(prog_name="recos")
