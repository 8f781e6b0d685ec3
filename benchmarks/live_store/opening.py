"""Open a live store of many queues beside Java, and let a log roll again and again."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, interleave, say, seconds
from benchmarks.live_store.peer_store import PEERS, TITLES, PeerStore
from benchmarks.results import Bar, Section, Series

QUEUES_EACH = 8
TOPICS = 1250
WANTED_OPEN = 2
ROLLS = 10_000
SEGMENT_SIZE = 4096
KEPT = 64
OF_EACH = ("descriptors", "mappings")

METHOD = """\
mqlake puts one message into each of {queues:,} queues ({topics:,} topics of {each}), in files of
default sizes. Each round opens the store, which was closed cleanly, in a new process (Java keeps
the descriptors of a store that it has closed). The first round is dropped.

Then mqlake puts messages into a log with files of {size:,} B until it has begun {rolls:,} of them.
The process's open descriptors and mapped regions are counted after 100 files and at the end, when
all is on the disk. A store keeps at most {kept} files of its log open for reading."""


def measure(bench: Bench) -> Section:
    """Open the same store by turns; roll a log."""
    queues = TOPICS * QUEUES_EACH
    say(f"mqlake puts into {queues:,} queues")
    store = PeerStore(bench, "mqlake")
    store.open()
    store.put(messages=queues, body=128, topics=TOPICS, queues=QUEUES_EACH)
    store.close()
    runs = {
        name: lambda name=name: _open(bench, name, store, queues) for name in ("mqlake", "java")
    }
    answers = interleave(runs, dropped=1, repetitions=bench.repetitions)
    store.remove()
    work = {"queues": queues}
    series = [
        Series(f"open {queues:,} queues, {TITLES[name]}", "s", seconds(answers[name]), work)
        for name in answers
    ]
    text = f"open a store of {queues:,} queues"
    bars = [Bar(text, "<", WANTED_OPEN, series[0].median, "s"), *_roll(bench)]
    method = METHOD.format(
        queues=queues, topics=TOPICS, each=QUEUES_EACH, size=SEGMENT_SIZE, rolls=ROLLS, kept=KEPT
    )
    return Section("live_store_open", "Live store: open, roll", method, series, bars)


def _open(bench: Bench, name: str, store: PeerStore, queues: int) -> dict[str, Any]:
    peer = bench.start(PEERS[name])
    try:
        answer = peer.ask("open", store.path, "{}")
        assert answer["messages"] == queues, f"{name} lost messages: {answer}"
        peer.ask("close")
    finally:
        peer.close()
    return answer


def _roll(bench: Bench) -> list[Bar]:
    say(f"mqlake rolls its log {ROLLS:,} times")
    store = PeerStore(bench, "mqlake", mappedFileSizeCommitLog=SEGMENT_SIZE)
    store.open()
    before = store.peer.ask("roll", 100)
    after = store.peer.ask("roll", ROLLS - 100)
    store.close()
    store.remove()
    text = f"more after {ROLLS:,} rolls than after 100"
    return [Bar(text, "≤", KEPT, after[what] - before[what], what) for what in OF_EACH]
