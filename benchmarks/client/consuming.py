"""How fast consumers take a backlog."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from benchmarks.bench import Bench, interleave
from benchmarks.client.sides import a_broker, clients, java_version
from benchmarks.peer import Peer
from benchmarks.results import Bar, Section, Series

COUNT = 100_000
DROPPED = 2
SIZES = {"128 B": 128, "1 KiB": 1024}
WAYS = {
    "mqlake, handler": ("mqlake", "push"),
    "mqlake, async for": ("mqlake", "iterate"),
    "mqlake, Arrow batches": ("mqlake", "arrow"),
    "Java, push consumer": ("java", "push"),
    "Java, lite pull consumer": ("java", "pull"),
}

METHOD = """\
A topic of 4 queues on `mqlake broker` contains {count:,} messages. New groups take turns to read
all of them, timed from the first message received to the last: mqlake's `Consumer` with a handler
and with `async for` and `ack()`, its `ArrowConsumer` with `arrow_batches()`, and the push consumer
and the lite pull consumer of RocketMQ's client {java} with their defaults. Each client is a process
of its own. The first {dropped} turns are dropped."""


def measure(bench: Bench) -> Section:
    """Measure both clients' consumers."""
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    with a_broker(bench) as broker, clients(bench) as peers:
        for title, size in SIZES.items():
            topic, groups = f"Backlog{size}", count()
            peers["mqlake"].ask("batches", broker.names, topic, size, COUNT, 50, 4)

            turns = interleave(
                {
                    name: partial(_consume, peers[client], form, broker.names, topic, groups)
                    for name, (client, form) in WAYS.items()
                },
                dropped=DROPPED,
                repetitions=bench.repetitions,
            )
            series += [
                Series(
                    f"{title}, {name}",
                    "s",
                    [answer["seconds"] for answer in answers],
                    {"messages": COUNT},
                )
                for name, answers in turns.items()
            ]
            java = _median(turns["Java, push consumer"], "seconds")
            for way, bar, form in (
                ("mqlake, handler", 0.5, "with a handler"),
                ("mqlake, Arrow batches", 1.0, "as Arrow batches"),
            ):
                text = f"{title}: messages a second {form}, against Java's push consumer"
                bars.append(Bar(text, "≥", bar, java / _median(turns[way], "seconds"), "x"))
            remarks += [
                f"{title}, {name}: {1e6 * _median(answers, 'cpu') / COUNT:.1f} µs of CPU a message"
                for name, answers in turns.items()
            ]
    method = METHOD.format(count=COUNT, java=java_version(), dropped=DROPPED)
    return Section("client_consumer", "Client: consumers", method, series, bars, remarks)


def _consume(
    peer: Peer, form: str, names: str, topic: str, groups: Iterator[int]
) -> dict[str, Any]:
    return peer.ask(form, names, topic, f"{topic}-{peer.name}-{next(groups)}", COUNT)


def _median(answers: list[dict[str, Any]], name: str) -> float:
    return statistics.median(answer[name] for answer in answers)
