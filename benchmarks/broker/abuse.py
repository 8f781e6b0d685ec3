"""How long others wait while one client floods a broker beyond one of its limits.

`python -m benchmarks.broker.abuse [LIMIT…]` prints a table: for each limit of addresses, the
latency of a client that makes few sends, one after another, while nothing else happens and while
another address makes requests as fast as it can. The broker has one core, if there are two; both
clients share the other one, and the flood has the lower priority there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker import sides
from benchmarks.broker.load import QUEUES, Load, frames
from benchmarks.broker.pulls import Answers, heartbeat, pull
from benchmarks.broker.sides import MqlakeBroker
from mqlake.protocol.command import Serialization

PACE = 0.004
"""Seconds from the begin of one send to that of the next one."""
SENDS = 1000
"""Of each measurement."""
CONNECTIONS = 4
"""Of the flood."""
_FLOOD_ADDRESS = "127.0.0.2"
_PATIENCE = 60.0
_SETTLE = 1.0
"""Seconds of the flood before it is measured."""
_LOWEST = 19
_CHUNK = 1 << 18


class Abuse(NamedTuple):
    """One limit, and how it is exceeded.

    Attributes:
        setting, value: of the broker. The client that is measured stays far below it.
        requests: returns what is sent again and again over each connection.
        reconnects: whether each request is made over a connection of its own, which stays open.
        first: returns what is sent before, once.
    """

    setting: str
    value: int
    requests: Callable[[], list[bytes]]
    reconnects: bool = False
    first: Callable[[], list[bytes]] = list[bytes]


def _sends(size: int = 128, topics: int = 1) -> list[bytes]:
    load = Load("", size=size, topics=topics, topic="flood", headers=Serialization.JSON)
    return frames(load, 64 if size > _CHUNK // 2 else 20_000)


ABUSES = {
    "requests": Abuse("maxRequestRatePerAddress", 1000, _sends),
    "bytes": Abuse("maxByteRatePerAddress", 4 << 20, lambda: _sends(size=256 << 10)),
    # One of the queues has a message; pulls of the others wait.
    "in-flight": Abuse(
        "maxInFlightPerAddress",
        100,
        lambda: [pull("flood", "flood", queue, 0) for queue in range(QUEUES)],
        first=lambda: [_sends()[0], heartbeat("flood", "flood")],
    ),
    "connections": Abuse("maxConnectionsPerAddress", 50, lambda: _sends()[:1], reconnects=True),
    "topics": Abuse("maxTopicsPerAddress", 100, lambda: _sends(topics=20_000)),
    "groups": Abuse(
        "maxGroupsPerAddress", 100, lambda: [heartbeat("flood", f"g{n}") for n in range(20_000)]
    ),
}


def main() -> None:
    """Measure the limits that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("limits", nargs="*", metavar="LIMIT", help=", ".join(ABUSES))
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    print("| limit | quiet p50, p99 | flooded p50, p99 | p99 to quiet |")
    print("| --- | --- | --- | --- |")
    for name in options.limits or ABUSES:
        with tempfile.TemporaryDirectory() as directory:
            _measure(name, Path(directory), options.turns)


def _measure(name: str, directory: Path, turns: int) -> None:
    abuse = ABUSES[name]
    broker = MqlakeBroker(directory / "mqlake", **{abuse.setting: str(abuse.value)})
    try:
        if (cores := os.cpu_count() or 1) > 1:
            sides.pin(broker, 0)
            os.sched_setaffinity(0, [cores - 1])
        client = _Client(broker.broker)
        client.latencies()
        quiet: list[list[float]] = []
        flooded: list[list[float]] = []
        for _ in range(turns):
            quiet.append(client.latencies())
            flood = multiprocessing.get_context("spawn").Process(
                target=_flood, args=(broker.broker, name), daemon=True
            )
            flood.start()
            time.sleep(_SETTLE)
            flooded.append(client.latencies())
            if not flood.is_alive():
                raise RuntimeError(f"the flood of {name} has ended by itself")
            flood.kill()
            flood.join()
            time.sleep(_SETTLE)
    finally:
        broker.stop()
    ratio = statistics.median(
        _percentile(after, 99) / _percentile(before, 99)
        for before, after in zip(quiet, flooded, strict=True)
    )
    print(f"| {name} | {_line(quiet)} | {_line(flooded)} | {ratio:.1f} |", flush=True)


class _Client:
    """A client that makes few sends."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._connection = socket.create_connection((host, int(port)), _PATIENCE)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = Answers(self._connection)
        self._frames = frames(Load("", topic="calm", headers=Serialization.JSON), SENDS)

    def latencies(self) -> list[float]:
        """Make all sends; return how many seconds each took."""
        found: list[float] = []
        for frame in self._frames:
            begin = time.perf_counter()
            self._connection.sendall(frame)
            self._answers.next()
            found.append(took := time.perf_counter() - begin)
            time.sleep(max(0.0, PACE - took))
        return found


class _Flooding:
    """One connection of the flood; it connects again where the broker has closed it."""

    def __init__(self, address: str) -> None:
        self._address, self._unsent = address, b""
        self._connect()

    def _connect(self) -> None:
        host, _, port = self._address.rpartition(":")
        target, source = (host, int(port)), (_FLOOD_ADDRESS, 0)
        self._connection = socket.create_connection(target, _PATIENCE, source)
        self._connection.setblocking(False)
        self._unsent = b""

    def go_on(self, request: bytes) -> bool:
        """Send what the broker takes, read what it answers; return whether the request began."""
        begins = not self._unsent
        if begins:
            self._unsent = request
        try:
            with suppress(BlockingIOError):
                self._unsent = self._unsent[self._connection.send(self._unsent) :]
            with suppress(BlockingIOError):
                while self._connection.recv(_CHUNK):
                    pass
        except ConnectionError:
            self.close()
            self._connect()
        return begins

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _flood(address: str, name: str) -> None:
    """Make requests as fast as the broker takes them; for ever."""
    os.nice(_LOWEST)
    abuse = ABUSES[name]
    requests, number = abuse.requests(), 0
    connections = [_Flooding(address) for _ in range(CONNECTIONS)]
    for request in abuse.first():
        connections[0].go_on(request)
        time.sleep(_SETTLE / 4)
    while True:
        for connection in connections[-CONNECTIONS:]:
            number += connection.go_on(requests[number % len(requests)])
        if abuse.reconnects:
            connections.append(_Flooding(address))
            if len(connections) > 10 * abuse.value:
                connections.pop(0).close()


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def _line(turns: Sequence[Sequence[float]]) -> str:
    """Return the medians over the turns, in milliseconds."""
    return ", ".join(
        f"{statistics.median(_percentile(turn, percent) for turn in turns) * 1000:.2f} ms"
        for percent in (50, 99)
    )


if __name__ == "__main__":
    main()
