"""Kill masters and promote their slaves, under producers: `python -m tests.replication`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability import machine, versions, write_section
from tests.replication.failover import Failovers, Result
from tests.seeds import first_seed

NIGHTLY = 200

_ABOUT = """\
Written by `python -m tests.replication --nightly`. A SYNC_MASTER and its slave, processes of their
own, change places under four producers: the master is killed (SIGKILL) at a random time, the slave
is stopped or killed, too, and started as the master; the store of the old one is removed, and an
empty slave follows. Each time, the promoted store must have every message that was acknowledged,
each producer's in their order, and none twice."""


def main() -> int:
    """Return 0 if nothing was lost, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.replication")
    parser.add_argument(
        "--nightly", action="store_true", help=f"{NIGHTLY} failovers; writes docs/reliability.md"
    )
    parser.add_argument("--failovers", type=int, help="how many")
    parser.add_argument("--seed", type=int, help="by default the day's")
    arguments = parser.parse_args()
    seed = first_seed(arguments.seed)
    count = arguments.failovers or (NIGHTLY if arguments.nightly else 3)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as path:
        result = asyncio.run(Failovers(Path(path), seed).run(count))
    minutes = (time.monotonic() - begin) / 60
    print(f"seed {seed}: {_counts(result)}, {minutes:.1f} minutes")
    for problem in result.problems:
        print(problem)
    if arguments.nightly:
        about = f"{minutes:.1f} minutes on {machine()}. {versions()}."
        counts = f"**{_counts(result)}**, on {time.strftime('%Y-%m-%d')}."
        write_section("Failovers", [*_ABOUT.splitlines(), "", counts, "", about])
    return 1 if result.problems else 0


def _counts(result: Result) -> str:
    return (
        f"{result.failovers} failovers, {result.acknowledged:,} messages acknowledged,"
        f" {result.others} not, {len(result.problems)} violations"
    )


if __name__ == "__main__":
    sys.exit(main())
