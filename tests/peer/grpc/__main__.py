"""python -m tests.peer.grpc: what the official clients see of mqlake and of RocketMQ's proxy."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.peer.grpc import page, record
from tests.peer.grpc.driver import COMMANDS
from tests.peer.grpc.run import SCENARIOS, of_sides
from tests.peer.grpc.sides import COMPARED, SIDES


def main() -> int:
    """Return 0 if the sides differ as it is recorded, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.grpc")
    parser.add_argument("--sides", nargs="+", default=COMPARED, choices=SIDES, metavar="SIDE")
    parser.add_argument(
        "--scenarios", nargs="+", default=list(SCENARIOS), choices=SCENARIOS, metavar="SCENARIO"
    )
    parser.add_argument(
        "--languages", nargs="+", default=list(COMMANDS), choices=COMMANDS, metavar="LANGUAGE"
    )
    parser.add_argument("--record", action="store_true", help="keep the results; write the page")
    parser.add_argument("--json", action="store_true", help="print all observations")
    arguments = parser.parse_args()
    scenarios = [SCENARIOS[name] for name in arguments.scenarios]
    with tempfile.TemporaryDirectory(prefix="grpc-") as directory:
        found = asyncio.run(
            of_sides(Path(directory), arguments.sides, scenarios, arguments.languages)
        )
    if arguments.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    if arguments.record:
        record.save(found)
        page.write()
    if not found.keys() >= set(COMPARED):
        return 0
    lines = record.unexpected(found)
    for text in lines:
        print(text, file=sys.stderr)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
