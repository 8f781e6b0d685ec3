"""Put messages into a live store, one or 64 per call: mqlake beside Java's DefaultMessageStore."""

from __future__ import annotations

import os
import statistics
from typing import Any

from benchmarks.bench import Answers, Bench, interleave, say
from benchmarks.live_store.peer_store import TITLES, PeerStore
from benchmarks.memory_state import stored
from benchmarks.results import Bar, Section, Series

WANTED_ONE = 0.6
WANTED_MANY = {128: 1.5, 1024: 1}
WANTED_SYNC = 1
WANTED_LAG = 10
A_CALL = 64
WAITING = 64
BODIES = (128, 1024)

METHOD = """\
Each round puts into a new store of default sizes: bodies of 128 B and 1 KiB, one key and one tag,
8 queues, one topic. One per call: Java `putMessage`, mqlake `put`, one thread, `ASYNC_FLUSH`.
{a_call} per call: Java `putMessages` with a batch for one queue, encoded by the caller as a client
does; mqlake `put_many` with messages of one queue. Objects are created within the measured time.
`SYNC_FLUSH`: {waiting} puts wait at any time; Java with {waiting} threads in `putMessage`, and with
one thread and {waiting} futures of `asyncPutMessage`; mqlake with {waiting} tasks on uvloop.
"until readable" ends when the last message can be read by queue and by key
(`dispatchBehindBytes()` is 0). The dispatch lag is sampled every 2 ms during the puts: the age of
the last dispatched message when the last put message was stored. Of the first body size, three
rounds are dropped; of the other, one."""


def measure(bench: Bench) -> Section:
    """Measure all ways to put, each by turns."""
    series: list[Series] = []
    bars: list[Bar] = []
    remarks: list[str] = []
    count = bench.size >> 11
    for number, body in enumerate(BODIES):
        dropped = 1 if number else 3
        one = _rounds(bench, f"one per call, {body} B", dropped, messages=count, body=body)
        many = _rounds(
            bench,
            f"{A_CALL} per call, {body} B",
            dropped,
            messages=2 * count,
            body=body,
            perCall=A_CALL,
        )
        series += [*_series(one, f"one per call, {body} B", count)]
        series += [*_series(many, f"{A_CALL} per call, {body} B", 2 * count)]
        bars += [_one_bar(one, body), _many_bar(many, body), *_lag_bars(one, many, body)]
        remarks += [*_lag_remarks(one, f"one per call, {body} B")]
        remarks += [*_lag_remarks(many, f"{A_CALL} per call, {body} B")]
    sync_series, sync_bar = _measure_sync(bench)
    method = METHOD.format(a_call=A_CALL, waiting=WAITING)
    return Section(
        "live_store_put",
        "Live store: put",
        method,
        [*series, *sync_series],
        [*bars, sync_bar],
        remarks,
    )


def _rounds(bench: Bench, what: str, dropped: int, **load: int) -> Answers:
    say(f" {what}")
    runs = {name: lambda name=name: _round(bench, name, {}, load) for name in TITLES}
    writes = stored(load["messages"], load["body"])
    return interleave(runs, dropped=dropped, repetitions=bench.repetitions, writes=writes)


def _round(
    bench: Bench, name: str, settings: dict[str, str], load: dict[str, int]
) -> dict[str, Any]:
    store = PeerStore(bench, name, **settings)
    os.sync()
    store.open()
    answer = store.put(**load)
    store.close()
    store.remove()
    return answer


def _series(answers: Answers, what: str, messages: int) -> list[Series]:
    work = {"messages": messages}
    ends = {"seconds": "put", "dispatched": "until readable"}
    return [
        Series(f"{what}, {end}, {TITLES[name]}", "s", _values(answers, name, key), work)
        for key, end in ends.items()
        for name in answers
    ]


def _one_bar(answers: Answers, body: int) -> Bar:
    text = f"rate of puts, one per call, {body} B, against Java's one thread"
    return Bar(text, "≥", WANTED_ONE, _ratio(answers, "seconds", "seconds"), "x")


def _many_bar(answers: Answers, body: int) -> Bar:
    text = f"rate of {A_CALL} per call until readable, {body} B, against Java's until readable"
    return Bar(text, "≥", WANTED_MANY[body], _ratio(answers, "dispatched", "dispatched"), "x")


def _lag_bars(one: Answers, many: Answers, body: int) -> list[Bar]:
    return [
        Bar(f"dispatch lag, median, {what}, {body} B", "<", WANTED_LAG, lag, "ms")
        for what, answers in (("one per call", one), (f"{A_CALL} per call", many))
        for lag in [_lag(answers, "mqlake")]
    ]


def _lag_remarks(answers: Answers, what: str) -> list[str]:
    said = [
        f"{TITLES[name]} {_lag(answers, name):.1f} ms, "
        f"{statistics.median(_values(answers, name, 'behindBytes')) / 1e6:.1f} MB at the last put"
        for name in answers
    ]
    return [f"Dispatch lag, {what}: {'; '.join(said)}."]


def _lag(answers: Answers, name: str) -> float:
    samples = [one for answer in answers[name] for one in answer["behindMilliseconds"]]
    return statistics.median(samples) if samples else 0.0


def _measure_sync(bench: Bench) -> tuple[list[Series], Bar]:
    settings: dict[str, str] = {"flushDiskType": "SYNC_FLUSH"}
    count = max(bench.size >> 16, 2 * WAITING)
    load = {"messages": count, "body": BODIES[0]}
    say(f" {WAITING} waiting, SYNC_FLUSH")
    runs = {
        "Java, threads": lambda: _round(bench, "java", settings, load | {"threads": WAITING}),
        "Java, futures": lambda: _round(bench, "java", settings, load | {"waiting": WAITING}),
        "mqlake, tasks": lambda: _round(bench, "mqlake", settings, load | {"waiting": WAITING}),
    }
    writes = stored(count, BODIES[0])
    answers = interleave(runs, dropped=1, repetitions=bench.repetitions, writes=writes)
    series = [
        Series(
            f"SYNC_FLUSH, {WAITING} waiting, {name}",
            "s",
            _values(answers, name, "seconds"),
            {"messages": count},
        )
        for name in answers
    ]
    ratio = min(one.median for one in series[:-1]) / series[-1].median
    text = f"rate under SYNC_FLUSH with {WAITING} waiting, against the faster of Java's"
    return series, Bar(text, "≥", WANTED_SYNC, ratio, "x")


def _ratio(answers: Answers, java: str, mine: str) -> float:
    return statistics.median(_values(answers, "java", java)) / statistics.median(
        _values(answers, "mqlake", mine)
    )


def _values(answers: Answers, name: str, key: str) -> list[float]:
    return [answer[key] for answer in answers[name]]
