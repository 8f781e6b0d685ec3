"""python -m tests.peer.mixed_groups: Java and Python members share groups for some minutes."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.peer.mixed_groups import page
from tests.peer.mixed_groups.brokers import JAVA, MQLAKE, started
from tests.peer.mixed_groups.run import MODES, Outcome, run
from tests.peer.rocketmq_client import NEWEST, Clients

_REBALANCE = 20_000
"""Milliseconds between two rebalances of Java's client that nobody asked for: its default."""


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.mixed_groups")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--seconds", type=float, default=300, help="with each broker")
    parser.add_argument("--seed", type=int, default=int(time.time() // 86_400))
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--brokers", nargs="+", default=(JAVA, MQLAKE), choices=(JAVA, MQLAKE))
    arguments = parser.parse_args()
    outcomes: dict[str, Sequence[Outcome]] = {}
    for kind in arguments.brokers:
        with tempfile.TemporaryDirectory() as name:
            os.environ["HOME"] = name  # broadcasting members keep their offsets there
            place = Path(name)
            clients = Clients(place, NEWEST, _REBALANCE)
            try:
                with started(kind, place) as addresses:
                    outcomes[kind] = run(
                        clients, *addresses, arguments.seconds, arguments.seed, arguments.modes
                    )
            finally:
                clients.close()
        for outcome in outcomes[kind]:
            print(kind, outcome, flush=True)
    if arguments.nightly:
        page.write(outcomes, len(outcomes) * arguments.seconds / 60)
    return int(any(each.violations for some in outcomes.values() for each in some))


if __name__ == "__main__":
    sys.exit(main())
