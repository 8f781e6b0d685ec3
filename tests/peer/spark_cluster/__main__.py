"""python -m tests.peer.spark_cluster: kill workers, brokers and drivers while they stream."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.peer.spark_cluster import page
from tests.peer.spark_cluster.run import VICTIMS, run

NIGHTLY = 25
DAY = 86_400
WORKERS = 3


def main() -> int:
    """Return 0 if everything held, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.spark_cluster")
    parser.add_argument("--nightly", action="store_true", help="writes docs/reliability.md")
    parser.add_argument("--kills", type=int, default=NIGHTLY, help="of each kind")
    parser.add_argument("--seed", type=int, default=int(time.time() // DAY))
    arguments = parser.parse_args()
    victims = list(VICTIMS) * arguments.kills
    random.Random(arguments.seed).shuffle(victims)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        outcome = run(Path(home), tuple(victims), VICTIMS[:-1], arguments.seed, WORKERS)
    print(outcome)
    if arguments.nightly:
        page.write(outcome, WORKERS, arguments.seed, time.monotonic() - begin)
    return int(outcome.violations > 0)


if __name__ == "__main__":
    sys.exit(main())
