"""Kill masters and promote their slaves, under producers: `python -m tests.replication`.

With `--controller`, RocketMQ's controller has another broker take over.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.peer.rocketmq_client import Clients
from tests.reliability import machine, versions, write_section
from tests.replication.failover import Failovers, Result
from tests.replication.led_failover import LedFailovers
from tests.replication.led_group import JAVA, OURS
from tests.seeds import first_seed

NIGHTLY, NIGHTLY_LED = 200, 100
GROUP = (OURS, JAVA, OURS)

_ABOUT = """\
Written by `python -m tests.replication --nightly`. A SYNC_MASTER and its slave, in separate
processes, swap roles while four producers of RocketMQ's Java client 5.5.0 send. They find the
master by the name server. The master is killed (SIGKILL) at a random time; the slave is stopped or
killed, too, and started as the master; the store of the old master is deleted, and an empty slave
follows. After each failover, the promoted store must contain every acknowledged message, each
producer's in order, and none twice."""

_ABOUT_LED = """\
Written by `python -m tests.replication --controller --nightly`. Three brokers of one name run
under RocketMQ's controller, each in a process of its own: two of mqlake and one of RocketMQ 5.5.0.
The master is killed (SIGKILL) at a random time while four producers send. The controller makes
another broker the master. The killed broker is started again on its store: it cuts off what was
never confirmed, and follows the new master. At the end, each store must have every acknowledged
message exactly once, those of each producer in order, and all logs must be byte-identical."""


def main() -> int:
    """Return 0 if nothing was lost, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.replication")
    parser.add_argument(
        "--nightly",
        action="store_true",
        help=f"{NIGHTLY} failovers, {NIGHTLY_LED} with --controller; writes docs/reliability.md",
    )
    parser.add_argument(
        "--controller", action="store_true", help="under RocketMQ's controller, with Java brokers"
    )
    parser.add_argument(
        "--group", nargs="+", choices=(OURS, JAVA), default=GROUP, help="its brokers"
    )
    parser.add_argument("--failovers", "--kills", type=int, help="how many")
    parser.add_argument(
        "--java", action="store_true", help="RocketMQ's producers; --nightly has them always"
    )
    parser.add_argument("--seed", type=int, help="by default the day's")
    arguments = parser.parse_args()
    seed = first_seed(arguments.seed)
    nightly = NIGHTLY_LED if arguments.controller else NIGHTLY
    count = arguments.failovers or (nightly if arguments.nightly else 3)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as path:
        if arguments.controller:
            run = LedFailovers(Path(path), seed, arguments.group).run(count)
            result = asyncio.run(run)
        else:
            is_java = arguments.java or arguments.nightly
            with clients(Path(path)) if is_java else nullcontext() as java:
                result = asyncio.run(Failovers(Path(path), seed, java).run(count))
    minutes = (time.monotonic() - begin) / 60
    print(f"seed {seed}: {_counts(result)}, {minutes:.1f} minutes")
    for problem in result.problems:
        print(problem)
    if arguments.nightly:
        about = f"{minutes:.1f} minutes on {machine()}. {versions()}."
        counts = f"**{_counts(result)}**, on {time.strftime('%Y-%m-%d')}."
        title, text = "Failovers", _ABOUT
        if arguments.controller:
            title, text = "Failovers under a controller", _ABOUT_LED
        write_section(title, [*text.splitlines(), "", counts, "", about])
    return 1 if result.problems else 0


@contextmanager
def clients(path: Path) -> Iterator[Clients]:
    """Run RocketMQ's clients.

    Raises:
        JavaMissingError: there is no Java.
    """
    path /= "clients"
    path.mkdir()
    java = Clients(path)
    try:
        yield java
    finally:
        java.close()


def _counts(result: Result) -> str:
    return (
        f"{result.failovers} failovers, {result.acknowledged:,} messages acknowledged,"
        f" {result.others:,} not, {len(result.problems)} violations"
    )


if __name__ == "__main__":
    sys.exit(main())
