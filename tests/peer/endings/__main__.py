"""python -m tests.peer.endings: what ends, with mqlake's broker and with RocketMQ's in one run."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.peer.endings import page, record
from tests.peer.endings.compare import compared
from tests.peer.endings.record import EVENTS


def main() -> int:
    """Return 0 if each broker did what is recorded, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.endings")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep what RocketMQ's broker does, and write docs/what-ends.md",
    )
    parser.add_argument("--events", nargs="+", default=EVENTS, choices=EVENTS, metavar="EVENT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(compared(Path(directory), arguments.events, print))
    if arguments.record:
        record.save(found.java)
        page.write()
    for text in found.unexpected:
        print(text, file=sys.stderr)
    unexplained = record.differences().keys() - record.reasons().keys()
    for cell in unexplained:
        print(f"no reason is given for {cell}", file=sys.stderr)
    return int(bool(unexplained) or bool(found.unexpected))


if __name__ == "__main__":
    sys.exit(main())
