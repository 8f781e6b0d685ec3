"""The program `mqlake`, and `python -m mqlake`."""

from __future__ import annotations

from mqlake.cli.progress import reported_imports


def main() -> None:
    """Run the command line on the arguments of this process."""
    with reported_imports():
        from mqlake.cli.app import main as run

        run()


if __name__ == "__main__":
    main()
