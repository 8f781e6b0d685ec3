"""Open a store whose process was killed: mqlake's recovery beside Java's, on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, interleave, remove, say, seconds
from benchmarks.live_store.peer_store import PEERS, TITLES, PeerStore
from benchmarks.memory_state import DERIVED
from benchmarks.results import Bar, Section, Series

WANTED_TIMES_JAVA = 3
BODY = 1024
RECORD = BODY + 130  # at most
SEGMENTS = 2
STATES = ("warm", "new")

METHOD = """\
Java puts {messages:,} messages of 1 KiB, with one key and one tag, as fast as it can into a store
of default sizes, a log of {size} MiB, and is killed (`kill -9`) when the last put has been
answered. Each round opens a copy of that store, which is in the page cache, until all messages are
dispatched and readable. Java deletes the last index file and rebuilds it; mqlake completes it. Both
find every message in the queues. "warm": in processes that have opened such a store before; the
first two rounds are dropped. "new": each time in a new process, as after a crash, timed from the
call that opens the store. There is no bar for the warm rounds: nobody recovers a store in a process
that has just recovered another."""


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
    writes = messages * DERIVED
    answers = interleave(runs, dropped=2, repetitions=bench.repetitions, writes=writes)
    remove(killed)
    work = {"messages": messages}
    series = {what: Series(what, "s", seconds(answers[what]), work) for what in answers}
    ratio = series["Java, new"].median / series["mqlake, new"].median
    text = "recovery after kill -9, new, against Java's"
    bars = [Bar(text, "≥", WANTED_TIMES_JAVA, ratio, "x")]
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
