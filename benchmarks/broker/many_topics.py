"""What a message costs a broker with many topics: processor time, sends to queues at random.

Headers are JSON, as Java's clients write them.

`python -m benchmarks.broker.many_topics [--before TREE] [--java]` prints a line for each load and
broker. TREE is another working tree of this project, whose broker is measured in turns with the one
of this tree; `--java` does the same with RocketMQ's broker.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.broker import sides
from benchmarks.broker.load import QUEUES, Load, run
from benchmarks.broker.sides import MqlakeBroker, Side
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.remoting.client import RemotingClient

LOADS = ("1000", "10000")
"""Topics, and sends a second at most."""
_TICKS = os.sysconf("SC_CLK_TCK")
_AT_ONCE = 16
"""Topics that are created concurrently."""


def main() -> None:
    """Measure the loads that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", default=LOADS, metavar="TOPICS[:PACE]")
    parser.add_argument("--before", type=Path, help="another working tree")
    parser.add_argument("--java", action="store_true", help="also RocketMQ's broker")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body")
    options = parser.parse_args()
    makers: dict[str, Callable[[Path], Side]] = {"mqlake": sides.mqlake}
    if options.before is not None:
        makers["before"] = lambda directory: _of(options.before.resolve(), directory)
    if options.java:
        makers["Java"] = sides.java
    for load in options.loads:
        topics, _, pace = load.partition(":")
        _measure(
            load,
            Load(
                "",
                size=options.size,
                seconds=options.seconds,
                topics=int(topics),
                headers=Serialization.JSON,
                pace=int(pace or 0),
            ),
            makers,
            options.turns,
        )


def _measure(title: str, load: Load, makers: dict[str, Callable[[Path], Side]], turns: int) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        sides.started(Path(directory), makers) as brokers,
    ):
        for name, broker in brokers.items():
            load.address = broker.broker
            before, begin = _processor(broker.process_id), time.perf_counter()
            asyncio.run(_create(load))
            used = sum(_processor(broker.process_id)) - sum(before)
            seconds = time.perf_counter() - begin
            print(
                f"{title:12} {name:7} created in {seconds:.1f} s, {used:.1f} s of CPU", flush=True
            )
        found: dict[str, list[dict[str, float]]] = {name: [] for name in brokers}
        for _ in range(turns):
            for name, broker in brokers.items():
                load.address = broker.broker
                found[name].append(_turn(load, broker.process_id))
        base = _used(found["mqlake"])
        for name, results in found.items():
            print(
                f"{title:12} {name:7}", _line(results), f"{base / _used(results):.2f}", flush=True
            )


def _of(tree: Path, directory: Path) -> MqlakeBroker:
    """Start the broker of another working tree."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(tree / "src")
    try:
        return MqlakeBroker(directory)
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


async def _create(load: Load) -> None:
    """Create the topics, some at once."""
    client, names = RemotingClient(), load.names()

    async def create() -> None:
        while names:
            header = CreateTopicHeader(
                topic=names.pop(),
                default_topic="TBW102",
                read_queue_nums=QUEUES,
                write_queue_nums=QUEUES,
                perm=6,
                topic_filter_type="SINGLE_TAG",
                topic_sys_flag=0,
                order=False,
            )
            await client.call(load.address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))

    await asyncio.gather(*(create() for _ in range(_AT_ONCE)))
    await client.close()


def _turn(load: Load, process_id: int) -> dict[str, float]:
    """Return the rate, and microseconds of the broker's processor time for a message."""
    before = _processor(process_id)
    found = run(load)
    for name, begin, end in zip(("user", "sys"), before, _processor(process_id), strict=True):
        found[name] = (end - begin) / found["total"] * 1e6
    return found


def _processor(process_id: int) -> tuple[float, float]:
    """Return the seconds of processor time that a process has used, by itself and in the kernel."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / _TICKS, int(fields[12]) / _TICKS


def _used(turns: list[dict[str, float]]) -> float:
    return statistics.median(turn["user"] + turn["sys"] for turn in turns)


def _line(turns: list[dict[str, float]]) -> str:
    rate, user, system = (
        statistics.median(turn[name] for turn in turns) for name in ("rate", "user", "sys")
    )
    each = " ".join(f"{turn['user'] + turn['sys']:.1f}" for turn in turns)
    return f"{rate:8.0f} /s  user {user:6.2f} sys {system:6.2f} µs of CPU a message  [{each}]"


if __name__ == "__main__":
    main()
