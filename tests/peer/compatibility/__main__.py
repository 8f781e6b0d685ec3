"""python -m tests.peer.compatibility: run RocketMQ's own integration tests."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from tests.peer.compatibility import record
from tests.peer.compatibility.java_class import FAILED, Outcome
from tests.peer.compatibility.page import write
from tests.peer.compatibility.run import class_names, run
from tests.peer.compatibility.servers import JAVA, MQLAKE
from tests.peer.java_build import BUILD


def main() -> int:
    """Return 0 if nothing failed that has no reason given, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.compatibility")
    parser.add_argument("--nightly", action="store_true", help="record it in docs/compatibility.md")
    parser.add_argument("--record", action="store_true", help="record what is run, keep the rest")
    parser.add_argument("--sides", nargs="+", default=(MQLAKE, JAVA), choices=(MQLAKE, JAVA))
    parser.add_argument("--classes", nargs="+", default=[""], help="words that their names have")
    parser.add_argument("--at-once", type=int, default=3, help="classes that run at the same time")
    parser.add_argument("--logs", type=Path, default=BUILD / "compatibility")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # processes end, too
    classes = [name for name in class_names() if any(word in name for word in arguments.classes)]
    results = {
        side: run(side, classes, arguments.logs, arguments.at_once, _print)
        for side in arguments.sides
    }
    if arguments.nightly or arguments.record:
        record.save(results, keep=arguments.record)
        write()
    unexplained = record.unexplained(results.get(MQLAKE, {}))
    for name in unexplained:
        print("no reason is given for", name, file=sys.stderr)
    return int(bool(unexplained))


def _print(name: str, method: str, outcome: Outcome) -> None:
    text = f"{outcome.state} {name}#{method} {outcome.seconds} s"
    print(text if outcome.state != FAILED else f"{text}: {outcome.reason}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
