"""The section of docs/reliability.md that a run of the crash simulator writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.crash.done import SEEDS, Crashed
from tests.crash.workloads import PREFIX
from tests.done_parts import DonePart, DoneParts, days_of, workload_of
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Crashes"

_INTRODUCTION = """\
Written by `python -m tests.crash --nightly`.

Scripts operate a live store on a disk in memory that records each write, sync, rename, removal and
directory sync. Two crashes are simulated after every step. After a process crash, everything that
was written remains, but perhaps only a part of the last change of a mapping. After a power loss,
everything that was synced remains, and any combination of the rest: sectors of 512 bytes and pages
of 4 KiB may be old, new or partly written, and sizes of files and names in directories may be old
or new. The store is opened on each such image. Some recoveries are crashed again, at each of their
steps.

Other writers are crashed in the same way: `kafka-*` append to a Kafka log directory, roll, cut and
recover it and rebuild its indexes; `exchange*` replace a store's files by rebuilt ones; `sink-*`
commit the rows of a Spark query to a store.
"""

_COUNTING = """\
### Invariants

Of a store:

- What was acknowledged as durable is readable; after a process crash, all that was acknowledged.
- Each readable message is byte-identical to one that was sent.
- Queue offsets have no gaps. Every record has its queue entry and its index entries, and there are
  no other entries.
- After the end of the log there are only zeros. If RocketMQ would accept what recovery cut off as a
  record, it is saved unchanged.
- Committed offsets are as they were last saved, or newer.
- Under `SYNC_FLUSH`, messages that are served after a recovery survive the next power loss.
- A second recovery writes nothing.
- One image in eight is used further: the store accepts a message at the next queue offset, stops,
  and is opened again without a change.

Of a Kafka log directory: what was flushed is readable; after a process crash, all that was
appended. Records are in the order of their appends. Indexes, aborted transactions and leader epochs
agree with the log. A second recovery changes no log. The directory accepts records and stops.

Of an exchange: the commit log is unchanged, the next rebuild finds each derived file complete, and
a store that is started instead has all messages.

Of the sink: a commit is in the store completely or not at all, and a micro-batch that is committed
again is there once.

An image counts once for a workload, however many crashes and seeds lead to it. If a workload has
too many crashes to try all of them, the seed selects some. It also selects which recoveries are
crashed again, and the steps of random workloads (`drawn-N`).
A run has the workloads that were never crashed with the code as it is: one is crashed again once
anything that it imports has changed. The table has those of the code as it is.
`python -m tests.crash --workload W --image N --seed S` shows one again.
"""


def write(parts: DoneParts[Crashed], path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(parts.current()), path)


def _lines(parts: Sequence[DonePart[Crashed]]) -> Iterator[str]:
    distinct = sum(part.result.distinct for part in parts)
    violated = sum(part.result.violated for part in parts)
    yield _INTRODUCTION
    yield f"**{distinct:,} images, {violated} violations**, on {days_of(parts)}."
    yield ""
    firsts = ", ".join(map(str, sorted({part.result.seed for part in parts})))
    told = f"{SEEDS} seeds from {firsts}"
    seconds = sum(part.seconds for part in parts)
    yield f"{told}; {seconds / 60:.0f} minutes of a process on {machine()}. {versions()}."
    yield ""
    yield _COUNTING
    yield "### Workloads"
    yield ""
    yield "| workload | steps | crashes | images | after a second crash | violations |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    drawn = [part for part in parts if part.name.startswith(PREFIX)]
    for part in parts:
        if part not in drawn:
            yield _row(f"`{workload_of(part.name)}`", [part])
    if drawn:
        yield _row(f"{len(drawn)} drawn scripts", drawn)
    found = [violation for part in parts for violation in part.result.violations]
    if found:
        yield "\n### Violations\n"
        for violation in found:
            yield f"```\n{violation}\n```"


def _row(name: str, parts: Sequence[DonePart[Crashed]]) -> str:
    names = ("moments", "images", "distinct", "again", "violated")
    sums = (sum(getattr(part.result, name) for part in parts) for name in names)
    return f"| {name} | {' | '.join(f'{count:,}' for count in sums)} |"
