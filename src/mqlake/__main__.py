"""Run the command line with `python -m mqlake`."""

from __future__ import annotations

from mqlake.cli.app import main

if __name__ == "__main__":
    main()
