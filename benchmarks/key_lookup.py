"""Look keys up in a full index file: mqlake beside Java's `IndexFile.selectPhyOffset`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import Bench, interleave, say, seconds
from benchmarks.commit_log import key
from benchmarks.peer import Peer
from benchmarks.results import Bar, Section, Series

ENTRIES = 19_999_999  # place 0 of the 20,000,000 stays empty
KEYS = 10_000
WARM_KEYS = 200_000
TOPIC = "topic-0"
WANTED_ONE = 10
WANTED_MANY = 1

METHOD = """\
RocketMQ's `IndexFile.putKey` fills a file of its default size, 5,000,000 slots and 20,000,000
entries, with {entries:,} entries. Both sides map the same file and look up the same {keys:,}
existing keys, a new random choice in each round. One key: each lookup is timed on its own, and
the median of the round counts; Java `selectPhyOffset`, mqlake the store reader's index. Many keys:
Java in one loop, mqlake in one call, from texts to offsets, including hashing. The number and the
sum of the offsets that both find are equal. {warm:,} lookups and two rounds warm both up."""


def measure(bench: Bench) -> Section:
    """Have Java write the file, then let both sides read it by turns."""
    store = bench.directory / "store-index"
    index = store / "index" / "20260101000000000"
    index.parent.mkdir(parents=True)
    peers = {name: bench.peer(name) for name in ("java", "local")}
    say(f"Java writes an index file of {ENTRIES:,} entries")
    written = peers["java"].ask("write-index", index, ENTRIES)
    paths = {"java": index, "local": store}
    _write_keys(store / "keys", WARM_KEYS)
    for name, peer in peers.items():
        peer.ask("lookup", paths[name], store / "keys")

    def run(name: str, peer: Peer) -> dict[str, Any]:
        if name == "java":
            _write_keys(store / "keys", KEYS)
        return peer.ask("lookup", paths[name], store / "keys")

    runs = {name: lambda name=name, peer=peer: run(name, peer) for name, peer in peers.items()}
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
    _agree(answers)
    index.unlink()
    one = {name: [answer["median"] for answer in answers[name]] for name in answers}
    series = [
        Series("one key, Java", "s", one["java"]),
        Series("one key, mqlake", "s", one["local"]),
        Series(f"{KEYS:,} keys, Java", "s", seconds(answers["java"]), {"keys": KEYS}),
        Series(f"{KEYS:,} keys, mqlake", "s", seconds(answers["local"]), {"keys": KEYS}),
    ]
    times = series[1].median / series[0].median
    rate = series[2].median / series[3].median
    bars = [
        Bar("time to look up one key, against Java's", "≤", WANTED_ONE, times, "x"),
        Bar(f"rate of {KEYS:,} keys in one call, against Java's", "≥", WANTED_MANY, rate, "x"),
    ]
    method = METHOD.format(entries=ENTRIES, keys=KEYS, warm=WARM_KEYS)
    remark = f"Java wrote the file at {ENTRIES / written['seconds'] / 1e6:.2f} M entries/s."
    return Section("key_lookup", "Key lookup", method, series, bars, [remark])


def _write_keys(path: Path, count: int) -> None:
    numbers = np.random.default_rng().integers(0, ENTRIES, count).tolist()
    path.write_text("".join(f"{TOPIC}#{key(number)}\n" for number in numbers))


def _agree(answers: dict[str, list[dict[str, Any]]]) -> None:
    for java, mine in zip(answers["java"], answers["local"], strict=True):
        for name in ("found", "offsetSum"):
            assert java[name] == mine[name], f"{name}: Java {java[name]}, mqlake {mine[name]}"
