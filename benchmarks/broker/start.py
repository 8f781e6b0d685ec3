"""How long a broker takes to start and to stop, and what it holds of memory meanwhile."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench, remove, say
from benchmarks.broker import sides
from benchmarks.broker.load import SUCCESS, Load, frames
from benchmarks.broker.sides import Side, whole_resident
from benchmarks.results import Bar, Section, Series
from mqlake.protocol.command import Serialization

METHOD = """\
Start: from the start of the process, with a store directory that does not exist, to the first send
that is answered with SUCCESS. Java's broker has its name server in the same JVM, and the send waits
until it is registered. Memory: the resident memory of the process, including mapped files, after
{idle} s without requests. Stop: from SIGTERM to process exit. The first round is dropped, because
it compiles the kernels, which an installation does in advance."""
IDLE = 3.0
"""Seconds."""


def measure(bench: Bench) -> Section:
    """Start and stop both brokers several times."""
    series: list[Series] = []
    found: dict[str, list[tuple[float, int, float]]] = {}
    for name, make in (("mqlake", sides.mqlake), ("Java", sides.java)):
        runs = range(bench.repetitions + 1)
        found[name] = [_once(bench.directory / f"start-{n}", make) for n in runs][1:]
        for started, memory, stopped in found[name]:
            say(
                f" {name}: {started:.2f} s to the first answer, {memory >> 20} MiB, {stopped:.2f} s"
            )
        starts, memories, stops = zip(*found[name], strict=True)
        series += [
            Series(f"{name}: first message", "s", list(starts)),
            Series(f"{name}: idle", "B", list(map(float, memories))),
            Series(f"{name}: stop", "s", list(stops)),
        ]
    first, idle, stop = (statistics.median(values) for values in zip(*found["mqlake"], strict=True))
    bars = [
        Bar("start to the first accepted message", "<", 1, first, "s"),
        Bar("resident memory when idle", "<", 150, idle / (1 << 20), "MiB"),
        Bar("SIGTERM to process exit", "≤", 2, stop, "s"),
    ]
    method = METHOD.format(idle=f"{IDLE:g}")
    return Section("broker_start", "Broker: start and stop", method, series, bars)


def _once(home: Path, make: Callable[[Path], Side]) -> tuple[float, int, float]:
    """Return seconds to the first answer, bytes when idle, seconds to stop."""
    begin = time.perf_counter()
    broker = make(home)
    try:
        _send(broker.broker)
        started = time.perf_counter() - begin
        time.sleep(IDLE)
        memory = whole_resident(broker.process_id)
    finally:
        begin = time.perf_counter()
        broker.stop()
        stopped = time.perf_counter() - begin
        remove(home)
    return started, memory, stopped


def _send(address: str) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        (send,) = frames(Load(address, headers=Serialization.JSON), 1)
        connection.sendall(send)
        answer = connection.recv(1 << 16)
    if SUCCESS[Serialization.JSON] not in answer:
        raise RuntimeError(f"the first send was refused: {answer!r}")
