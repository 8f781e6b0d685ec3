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

Scripts make a live store work on a disk in memory that records each write, sync, rename, removal
and directory sync. After every step the process is killed (all that was written is there, the last
change of a mapping perhaps in part) and the machine's power is cut: what was synced is there, and
of the rest any combination of sectors of 512 bytes and pages of 4 KiB, old, new or half written, of
sizes, and of names in directories. The store is opened on each such image. Some recoveries are
crashed again, at each of their steps.

Other writers are crashed in the same way: `kafka-*` append to a Kafka log directory, roll, cut and
recover it and rebuild its indexes; `exchange*` put rebuilt files in the place of a store's;
`sink-*` commit the rows of a Spark query to a store.
"""

_COUNTING = """\
### What must hold

Of each image: what was acknowledged as durable is readable (all that was acknowledged, if only the
process died); nothing is readable that was never sent, byte for byte; queue offsets have no gaps;
every record has its queue entry and its index entries, and there are no others; behind the end of
the log there are only zeros; what recovery cut off, and RocketMQ would take for a record, is kept
aside as it was; committed offsets are as they were last persisted, or newer; under
`SYNC_FLUSH` what is served after a recovery survives the next power cut; a second recovery writes
nothing; and of one image in eight, the store goes on: it takes a message at the next queue offset,
stops, and is opened again without a change.

Of a Kafka log directory: what was flushed is readable, and what was appended, if only the process
died; records follow each other as they were appended; indexes, aborted transactions and leader
epochs agree with the log; a second recovery changes no log; it takes records and stops. Of an
exchange: the commit log is untouched, the next rebuild finds each derived file whole, and a store
that is started instead has all messages. Of the sink: a commit is in the store as a whole or not at
all, and a micro-batch that is committed again is there once.

An image counts once for a workload, however many crashes and seeds leave it. If a workload has too
many crashes to try all, a seed draws them; it also draws which recoveries are crashed again, and
the scripts of the last line, `drawn-N`.
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
        yield _Row(f"{len(drawn)} drawn ones", drawn)


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
    yield "| workload | steps | crashes | images | of a second crash | violations |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in _rows(outcomes):
        yield row.line()
    found = [violation for outcome in outcomes for violation in outcome.violations]
    if found:
        yield "\n### Violations\n"
        for violation in found:
            yield f"```\n{violation.describe()}\n```"
