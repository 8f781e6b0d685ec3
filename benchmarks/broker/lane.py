"""What the lane saves: brokers with it and without it, in turns, under the same loads.

`python -m benchmarks.broker.lane` prints a line for each load and broker: the medians of the turns.
The broker has one core and the load generator another one, if there are two. For brokers with the
lane, the line ends with what a second thread of it could reach at most: see `_two_threads`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.broker import sides
from benchmarks.broker.sides import MqlakeBroker

LOADS = (
    *("64:1:128", "64:1:128:json", "16:64:128", "16:64:128:json", "1:1:128", "1:1:128:json"),
    *("8:1:128:32", "8:1:128:32:json"),
)
"""Connections, sends in flight on each, bytes of a body, messages of a batch if it is one, and
whether headers are JSON.
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_SIDES = {"lane": "on", "ordinary": "off"}


def main() -> None:
    """Measure the loads that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", default=LOADS)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _brokers(Path(directory)) as brokers:
        for load in arguments.loads:
            turns: dict[str, list[dict[str, float]]] = {side: [] for side in brokers}
            for _ in range(arguments.turns):
                for side, broker in brokers.items():
                    turns[side].append(_turn(broker, load, arguments.seconds))
            for side, found in turns.items():
                bound = f"  {_two_threads(found)}" if side == "lane" else ""
                print(f"{load:15} {side:9}", _line(found) + bound, flush=True)


@contextmanager
def _brokers(directory: Path) -> Iterator[dict[str, MqlakeBroker]]:
    """Run a broker with the lane and one without it."""
    brokers: dict[str, MqlakeBroker] = {}
    try:
        for side, choice in _SIDES.items():
            os.environ["MQLAKE_LANE"] = choice
            brokers[side] = broker = MqlakeBroker(directory / side)
            sides.pin(broker, 0)
            _send(broker, "2:2:128", 4.0)  # The kernels are loaded meanwhile.
        yield brokers
    finally:
        for broker in brokers.values():
            broker.stop()


def _turn(broker: MqlakeBroker, load: str, seconds: float) -> dict[str, float]:
    """Return messages a second, latencies of sends, and microseconds of the broker's processor time
    for a message.
    """
    before = _processor(broker.process_id)
    found = _send(broker, load, seconds)
    for name, begin, end in zip(
        ("user", "sys"), before, _processor(broker.process_id), strict=True
    ):
        found[name] = (end - begin) / found["total"] / _batch(load) * 1e6
    found["rate"] *= _batch(load)
    return found


def _batch(load: str) -> int:
    """Return how many messages each send of a load has."""
    options = load.split(":")[3:]
    return int(options[0]) if options and options[0] != "json" else 1


def _send(broker: MqlakeBroker, load: str, seconds: float) -> dict[str, float]:
    connections, window, size, *options = load.split(":")
    command = [sys.executable, "-m", "benchmarks.broker.load", broker.broker]
    command += ["--connections", connections, "--window", window, "--size", size]
    command += ["--seconds", str(seconds), "--batch", str(_batch(load))]
    command += ["--json"] if "json" in options else []
    last = {(os.cpu_count() or 1) - 1}
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, last),
    )
    return json.loads(done.stdout)


def _processor(process_id: int) -> tuple[float, float]:
    """Return the seconds of processor time that a process has used, by itself and in the kernel."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / _TICKS, int(fields[12]) / _TICKS


def _line(turns: list[dict[str, float]]) -> str:
    def median(name: str) -> float:
        return statistics.median(turn.get(name, 0.0) for turn in turns)

    rates = " ".join(f"{turn['rate']:.0f}" for turn in turns)
    parts = [f"{median('rate'):8.0f} /s", f"user {median('user'):6.2f} sys {median('sys'):6.2f} µs"]
    parts += [f"{name} {median(name):6.0f}" for name in ("p50", "p99", "p99.9") if median(name)]
    return "  ".join([*parts, f"[{rates}]"])


def _two_threads(turns: list[dict[str, float]]) -> str:
    """Return by how much a second thread could raise the rate at most.

    System calls on other connections can run beside each other. The compiled code reads and changes
    what all connections share: known topics and permissions, next offsets, the end of the log.
    """
    serial, beside = (statistics.median(turn[name] for turn in turns) for name in ("user", "sys"))
    return f"two threads: at most {(serial + beside) / (serial + beside / 2):.2f} x"


if __name__ == "__main__":
    main()
