"""Read queues of a live store, 32 messages per call: mqlake beside Java's `getMessage`."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, interleave, say, seconds
from benchmarks.live_store.peer_store import TITLES, PeerStore
from benchmarks.results import Bar, Section, Series

WANTED_ARROW, WANTED_BYTES = 1.2, 0.5
"""Bars, as multiples of Java's rates."""
A_CALL = 32
MANY = 512
BYTES_IN_MANY = f"mqlake, bytes, {MANY} per call"
IN_MANY = f"mqlake, Arrow, CRC checked, {MANY} per call"
BODY = 1024
WAYS = {
    "Java, bytes": ("java", "bytes"),
    "mqlake, bytes": ("mqlake", "bytes"),
    "mqlake, bytes, CRC checked": ("mqlake", "bytes-checked"),
    BYTES_IN_MANY: ("mqlake", f"bytes-{MANY}"),
    "Java, decoded": ("java", "decoded"),
    "mqlake, decoded": ("mqlake", "decoded"),
    "mqlake, decoded, CRC checked": ("mqlake", "decoded-checked"),
    "mqlake, Arrow": ("mqlake", "arrow"),
    "mqlake, Arrow, CRC checked": ("mqlake", "arrow-checked"),
    IN_MANY: ("mqlake", f"arrow-checked-{MANY}"),
}

METHOD = """\
{messages:,} messages of 1 KiB in 8 queues, which each side has put itself and has open, in the page
cache. A round pulls all of them, {a_call} per call, from the first offset of each queue to its
last: as bytes of the log; decoded one by one (Java `MessageDecoder.decode` with the body); as Arrow
columns with all fields. mqlake also pulls {many} per call; Java returns at most 32
(`maxTransferCountOnMessageInMemory`). Java does not check the CRC of bodies here. mqlake checks it
unless `crc=False`, and is measured both ways. All ways of a side find the same bytes, and all ways
of both the same queue offsets. The first two rounds are dropped. There is no bar for decoded
messages: to create a Python object with all fields takes as long as all of Java's work."""


def measure(bench: Bench) -> Section:
    """Fill a store for each side, and read both by turns."""
    messages = bench.size >> 10
    stores = {name: PeerStore(bench, name) for name in TITLES}
    for store in stores.values():
        say(f"{store.peer.name} puts {messages:,} messages")
        store.open()
        store.put(messages=messages, body=BODY)
    runs = {
        what: lambda name=name, way=way: _scan(stores[name], way, messages)
        for what, (name, way) in WAYS.items()
    }
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
    for store in stores.values():
        store.close()
        store.remove()
    # mqlake's records have a CRC property more.
    of_bytes = {name: [what for what in WAYS if WAYS[what] in _bytes(name)] for name in TITLES}
    others = [what for what, (_, way) in WAYS.items() if not way.startswith("bytes")]
    for ways in (*of_bytes.values(), others):
        sums = {answer["sum"] for what in ways for answer in answers[what]}
        assert len(sums) == 1, f"sums differ: {sums}"
    work = {"messages": messages}
    series = {what: Series(what, "s", seconds(answers[what]), work) for what in answers}
    text = f"{MANY} messages as Arrow, CRC checked, against Java's decoded"
    ratio = series["Java, decoded"].median / series[IN_MANY].median
    of_bytes_in_many = series["Java, bytes"].median / series[BYTES_IN_MANY].median
    bars = [
        Bar(text, "≥", WANTED_ARROW, ratio, "x"),
        Bar(f"{MANY} messages as bytes, against Java's", "≥", WANTED_BYTES, of_bytes_in_many, "x"),
    ]
    method = METHOD.format(messages=messages, a_call=A_CALL, many=MANY)
    return Section("live_store_get", "Live store: get", method, [*series.values()], bars)


def _bytes(name: str) -> list[tuple[str, str]]:
    return [(name, "bytes"), (name, "bytes-checked"), (name, f"bytes-{MANY}")]


def _scan(store: PeerStore, way: str, messages: int) -> dict[str, Any]:
    answer = store.peer.ask("scan", way)
    assert answer["messages"] == messages, f"{store.peer.name} missed messages: {answer}"
    return answer
