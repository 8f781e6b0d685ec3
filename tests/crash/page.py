"""The section of docs/reliability.md that a run of the crash simulator writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.crash.simulator import Outcome
from tests.crash.workloads import PREFIX
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
`python -m tests.crash --workload W --image N --seed S` shows one again.
"""


class _Row(NamedTuple):
    """One line of the table; several workloads may share one."""

    name: str
    outcomes: Sequence[Outcome]

    def line(self) -> str:
        names = ("moments", "images", "distinct", "again", "violated")
        sums = (sum(getattr(outcome, name) for outcome in self.outcomes) for name in names)
        return f"| {self.name} | {' | '.join(f'{count:,}' for count in sums)} |"


def write(
    outcomes: Sequence[Outcome], seeds: Sequence[int], seconds: float, path: Path = PATH
) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seeds, seconds), path)


def _rows(outcomes: Sequence[Outcome]) -> Iterator[_Row]:
    """Yield what came of each workload; the drawn ones are one line."""
    drawn = [outcome for outcome in outcomes if outcome.name.startswith(PREFIX)]
    for outcome in sorted(outcomes, key=lambda outcome: outcome.name):
        if outcome not in drawn:
            yield _Row(f"`{outcome.name}`", [outcome])
    if drawn:
        yield _Row(f"{len(drawn)} drawn scripts", drawn)


def _lines(outcomes: Sequence[Outcome], seeds: Sequence[int], seconds: float) -> Iterator[str]:
    distinct = sum(outcome.distinct for outcome in outcomes)
    violated = sum(outcome.violated for outcome in outcomes)
    yield _INTRODUCTION
    yield f"**{distinct:,} images, {violated} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    told = f"{'Seeds' if len(seeds) > 1 else 'Seed'} {', '.join(map(str, seeds))}"
    yield f"{told}; {seconds / 60:.1f} minutes on {machine()}. {versions()}."
    yield ""
    yield _COUNTING
    yield "### Workloads"
    yield ""
    yield "| workload | steps | crashes | images | after a second crash | violations |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in _rows(outcomes):
        yield row.line()
    found = [violation for outcome in outcomes for violation in outcome.violations]
    if found:
        yield "\n### Violations\n"
        for violation in found:
            yield f"```\n{violation.describe()}\n```"
