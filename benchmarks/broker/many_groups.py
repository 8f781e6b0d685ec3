"""How long groups wait for one message: all of them pull the queue that it is sent to.

Each group has one member, with a connection of its own.

`python -m benchmarks.broker.many_groups [GROUPS] [--turns N] [--without java]` prints a line for
each broker: milliseconds from the send to the answer of the first pull, the median, and the last.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.broker import sides
from benchmarks.broker.load import Load, frames
from benchmarks.broker.pulls import heartbeat, pull
from benchmarks.broker.sides import Side, cpu_seconds
from mqlake.protocol.command import RESPONSE, Serialization

TOPIC, QUEUE, SIZE = "many-groups", 0, 1024
ROUNDS = 10
"""Messages of a turn."""
_PATIENCE = 30.0
_SETTLE = 0.3
"""Seconds in which the pulls of a round have arrived, and wait."""
_CHUNK = 1 << 16
_PREFIX = 8


class _Member:
    """One member of a group of its own."""

    def __init__(self, address: tuple[str, int], group: str) -> None:
        self.group = group
        self.connection = socket.create_connection(address)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def ask(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answers(self) -> int:
        """Receive; return how many answers have arrived, requests of the broker left out."""
        if not (data := self.connection.recv(_CHUNK)):
            raise ConnectionError(f"the broker closed the connection of {self.group}")
        self._data += data
        count = 0
        while len(self._data) >= _PREFIX:
            length = 4 + int.from_bytes(self._data[:4])
            if len(self._data) < length:
                break
            header = self._data[_PREFIX : _PREFIX + int.from_bytes(self._data[5:8])]
            count += f'"flag":{RESPONSE}'.encode() in header
            self._data = self._data[length:]
        return count


class _Groups:
    """So many groups, all of which pull one queue of a broker."""

    def __init__(self, side: Side, count: int) -> None:
        host, _, port = side.broker.rpartition(":")
        load = Load("", topic=TOPIC, size=SIZE, headers=Serialization.JSON)
        (self._message,) = frames(load, 1)  # To the first queue.
        self._sender = _Member((host, int(port)), "sender")
        self._send()
        self._members = [_Member((host, int(port)), f"group-{number}") for number in range(count)]
        self._selector = selectors.DefaultSelector()
        for member in self._members:
            self._selector.register(member.connection, selectors.EVENT_READ, member)
            member.ask(heartbeat(TOPIC, member.group))
        self._arrivals(count)
        self._offset = 1

    def round(self) -> list[float]:
        """Let all pull, send one message, return the seconds until each has its answer."""
        for member in self._members:
            member.ask(pull(TOPIC, member.group, QUEUE, self._offset))
        time.sleep(_SETTLE)
        begin = time.perf_counter()
        self._send()
        arrivals = self._arrivals(len(self._members))
        self._offset += 1
        return [arrival - begin for arrival in arrivals]

    def close(self) -> None:
        """Close all connections."""
        for member in (self._sender, *self._members):
            member.connection.close()

    def _send(self) -> None:
        self._sender.ask(self._message)
        while not self._sender.answers():
            pass

    def _arrivals(self, count: int) -> list[float]:
        """Return the times at which so many answers arrive."""
        times: list[float] = []
        while len(times) < count:
            if not (ready := self._selector.select(_PATIENCE)):
                raise TimeoutError(f"{count - len(times)} of {count} answers are missing")
            for key, _ in ready:
                times += [time.perf_counter()] * key.data.answers()
        return times


def main() -> None:
    """Measure the brokers that the command line names, by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="?", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--without", choices=["java"])
    options = parser.parse_args()
    makers: dict[str, Callable[[Path], Side]] = {"mqlake": sides.mqlake}
    if options.without is None:
        makers["Java"] = sides.java
    with (
        tempfile.TemporaryDirectory() as directory,
        sides.started(Path(directory), makers) as brokers,
    ):
        groups = {name: _Groups(side, options.groups) for name, side in brokers.items()}
        found: dict[str, list[list[float]]] = {name: [] for name in brokers}
        used = dict.fromkeys(brokers, 0.0)
        for turn in range(1 + options.turns):
            for name, side in brokers.items():
                before = cpu_seconds(side.process_id)
                rounds = [groups[name].round() for _ in range(ROUNDS)]
                if turn:  # The first one warms up.
                    found[name] += rounds
                    used[name] += cpu_seconds(side.process_id) - before
        for name, rounds in found.items():
            pulls = options.groups * len(rounds)
            print(f"{name:7} {_line(rounds)}, {used[name] / pulls * 1e6:.0f} µs of CPU a pull")
        for each in groups.values():
            each.close()


def _line(rounds: Sequence[Sequence[float]]) -> str:
    """Return medians over all rounds, and the largest last arrival."""
    first, middle, last = (
        statistics.median(choose(arrivals) for arrivals in rounds) * 1000
        for choose in (min, statistics.median, max)
    )
    slowest = max(max(arrivals) for arrivals in rounds) * 1000
    return f"first {first:.1f}, median {middle:.1f}, last {last:.1f} ms (at most {slowest:.1f})"


if __name__ == "__main__":
    main()
