"""Read queues of a live store, 32 messages a call: mqlake beside Java's `getMessage`."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, interleave, say, seconds
from benchmarks.live_store.peer_store import TITLES, PeerStore
from benchmarks.results import Bar, Section, Series

WANTED_DECODED = 0.5
WANTED_ARROW = 1
A_CALL = 32
BODY = 1024
WAYS = {
    "Java, bytes": ("java", "bytes"),
    "mqlake, bytes": ("mqlake", "bytes"),
    "mqlake, bytes, CRC checked": ("mqlake", "bytes-checked"),
    "Java, decoded": ("java", "decoded"),
    "mqlake, decoded": ("mqlake", "decoded"),
    "mqlake, decoded, CRC checked": ("mqlake", "decoded-checked"),
    "mqlake, Arrow": ("mqlake", "arrow"),
    "mqlake, Arrow, CRC checked": ("mqlake", "arrow-checked"),
}

METHOD = """\
{messages:,} messages of 1 KiB in 8 queues, which each side has put itself and has open, in the page
cache. A round pulls all of them, {a_call} a call, from the first offset of each queue to its last:
as bytes of the log; decoded one by one (Java `MessageDecoder.decode` with the body); as Arrow
columns with all fields. Java does not check the CRC of bodies here; mqlake does unless it is told
not to (`crc=False`), and is measured both ways. The sums of all sizes and of all queue offsets are
the same. The first two rounds are dropped."""


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
    for is_bytes in (True, False):
        ways = [what for what, (_, way) in WAYS.items() if way.startswith("bytes") is is_bytes]
        sums = {answer["sum"] for what in ways for answer in answers[what]}
        assert len(sums) == 1, f"sums differ: {sums}"
    work = {"messages": messages}
    series = {what: Series(what, "s", seconds(answers[what]), work) for what in answers}
    java = series["Java, decoded"].median
    bars = [
        Bar(text, "≥", wanted, java / series[what].median, "x")
        for text, wanted, what in (
            ("messages decoded, against Java's", WANTED_DECODED, "mqlake, decoded"),
            ("messages as Arrow, against Java's decoded", WANTED_ARROW, "mqlake, Arrow"),
        )
    ]
    method = METHOD.format(messages=messages, a_call=A_CALL)
    return Section("live_store_get", "Live store: get", method, [*series.values()], bars)


def _scan(store: PeerStore, way: str, messages: int) -> dict[str, Any]:
    answer = store.peer.ask("scan", way)
    assert answer["messages"] == messages, f"{store.peer.name} missed messages: {answer}"
    return answer
