"""How fast producers send: one by one, many in flight, in batches."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from benchmarks.bench import Bench, interleave
from benchmarks.client.sides import TITLES, a_broker, clients, java_version
from benchmarks.memory_state import stored
from benchmarks.peer import Peer
from benchmarks.results import Bar, Section, Series

IN_FLIGHT = 64
BATCH, BATCHES_IN_FLIGHT = 32, 8
COUNT, BATCHED, ONE_BY_ONE = 30_000, 96_000, 3000
DROPPED = 3
SIZES = {"128 B": 128, "1 KiB": 1024}

METHOD = """\
A producer of mqlake's client and one of RocketMQ's client {java}, each in a process of its own,
take turns to send to the same `mqlake broker` (`ASYNC_FLUSH`, a topic of 4 queues that the first
send creates). In each turn: {count:,} messages with {in_flight} sends in flight; then {batched:,}
messages in batches of {batch} (`send_many`; Java's `send(Collection)`), {batches} in flight; then
{single:,} messages, one send after another. The first {dropped} turns of each are dropped, because
they warm up the JVM. CPU is that of the client's process, all threads."""


def measure(bench: Bench) -> Section:
    """Measure both producers."""
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    with a_broker(bench) as broker, clients(bench) as peers:
        for title, size in SIZES.items():
            words = (broker.names, f"Send{size}", size)
            many = _turns(bench, peers, stored(COUNT, size), "send", *words, COUNT, IN_FLIGHT)
            series += _series(f"{IN_FLIGHT} in flight, {title}", many)
            bars.append(_rate_bar(f"{IN_FLIGHT} in flight, {title}", many, 0.7))
            batches = _turns(
                bench,
                peers,
                stored(BATCHED, size),
                "batches",
                *words,
                BATCHED,
                BATCH,
                BATCHES_IN_FLIGHT,
            )
            series += _series(f"batches of {BATCH}, {title}", batches)
            bars.append(_rate_bar(f"batches of {BATCH}, {title}", batches, 1.0))
            remarks += _cpu(title, many, batches)
        writes = stored(ONE_BY_ONE, 128)
        single = _turns(
            bench, peers, writes, "one by one", broker.names, "Send128", 128, ONE_BY_ONE
        )
    series += [
        Series(
            f"one in flight, 128 B, median of one turn, {TITLES[name]}",
            "s",
            [answer["median"] for answer in answers],
        )
        for name, answers in single.items()
    ]
    late = _median(single["mqlake"], "median") / _median(single["java"], "median")
    bars.append(Bar("one in flight, 128 B: median latency, against Java's", "≤", 1.3, late, "x"))
    method = METHOD.format(
        java=java_version(),
        in_flight=IN_FLIGHT,
        count=COUNT,
        batch=BATCH,
        batches=BATCHES_IN_FLIGHT,
        batched=BATCHED,
        single=ONE_BY_ONE,
        dropped=DROPPED,
    )
    return Section("client_producer", "Client: producers", method, series, bars, remarks)


Turns = dict[str, list[dict[str, float]]]


def _turns(bench: Bench, peers: Mapping[str, Peer], writes: int, *words: object) -> Turns:
    runs = {name: (lambda peer=peer: peer.ask(*words)) for name, peer in peers.items()}
    return interleave(runs, dropped=DROPPED, repetitions=bench.repetitions, writes=writes)


def _series(title: str, turns: Turns) -> list[Series]:
    return [
        Series(
            f"{title}, {TITLES[name]}",
            "s",
            [answer["seconds"] for answer in answers],
            {"messages": round(answers[0]["messages"])},
        )
        for name, answers in turns.items()
    ]


def _rate_bar(title: str, turns: Turns, wanted: float) -> Bar:
    rate = _median(turns["java"], "cpu") / _median(turns["mqlake"], "cpu")
    return Bar(f"{title}: messages a CPU second, against Java's", "≥", wanted, rate, "x")


def _cpu(title: str, many: Turns, batches: Turns) -> list[str]:
    return [
        f"{title}, {TITLES[name]}: {_each(many[name]):.1f} µs of CPU a message,"
        f" {_each(batches[name]):.1f} µs in batches"
        for name in many
    ]


def _each(answers: list[dict[str, float]]) -> float:
    return statistics.median(1e6 * answer["cpu"] / answer["messages"] for answer in answers)


def _median(answers: list[dict[str, float]], name: str) -> float:
    return statistics.median(answer[name] for answer in answers)
