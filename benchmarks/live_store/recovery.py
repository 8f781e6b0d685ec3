"""Open a store whose process was killed: mqlake's recovery beside Java's, on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.live_store.peer_store import PEERS, TITLES, PeerStore
from benchmarks.results import Bar, Section, Series

WANTED_TIMES_JAVA = 3
BODY = 1024
RECORD = BODY + 130  # at most
SEGMENTS = 2
STATES = ("warm", "new")

METHOD = """\
Java puts {messages:,} messages of 1 KiB, with one key and one tag, as fast as it can into a store
of default sizes, a log of {size} MiB, and is killed (`kill -9`) when the last put has been
answered. Each round opens a copy of what that left, which is in the page cache, until all is
dispatched and can be read. Java deletes the last index file and makes it again; mqlake completes
it. Both find every message in the queues. "warm": in processes that have done it before, the first
two rounds dropped. "new": each time in a new process, as a restart is, timed from the call that
opens the store."""


def measure(bench: Bench) -> Section:
    """Let Java leave a store behind, and both recover copies of it by turns."""
    messages = SEGMENTS * bench.size // RECORD
    killed = _killed(bench, messages)
    runs = {
        f"{TITLES[name]}, {state}": lambda name=name, state=state: _run(
            bench, name, state, killed, messages
        )
        for state in STATES
        for name in TITLES
    }
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions)
    remove(killed)
    work = {"messages": messages}
    series = {what: Series(what, "s", seconds(answers[what]), work) for what in answers}
    bars = [
        Bar(f"recovery after kill -9, {state}, against Java's", "≥", WANTED_TIMES_JAVA, ratio, "x")
        for state in STATES
        for ratio in [series[f"Java, {state}"].median / series[f"mqlake, {state}"].median]
    ]
    method = METHOD.format(messages=messages, size=messages * RECORD >> 20)
    title = "Live store: recovery"
    return Section("live_store_recovery", title, method, [*series.values()], bars)


def _killed(bench: Bench, messages: int) -> Path:
    say(f"Java puts {messages:,} messages, and is killed")
    writer = bench.start("java")
    store = PeerStore(bench, "java", writer)
    try:
        store.open()
        store.put(messages=messages, body=BODY, wait=0)
    finally:
        writer.kill()
    return store.path.rename(bench.directory / "live-killed")


def _run(bench: Bench, name: str, state: str, killed: Path, messages: int) -> dict[str, Any]:
    new = bench.start(PEERS[name]) if state == "new" else None
    store = PeerStore(bench, name, new)
    store.copy(killed)
    answer = store.open()
    assert answer["messages"] == messages, f"{name} lost messages: {answer}"
    if new is not None:
        new.kill()
    else:
        store.close()
    store.remove()
    return answer
