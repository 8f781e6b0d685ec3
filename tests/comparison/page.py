"""The section of docs/reliability.md that a run of the comparison writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.comparison.all import ALL
from tests.comparison.done import Compared
from tests.done_parts import DoneParts, days_of, workload_of
from tests.reliability import PATH, machine, versions, write_section

TITLE = "The comparison"

_INTRODUCTION = """\
Written by `python -m tests.comparison --nightly`.

Each workload is run once without a failure, and once for each operation that can fail, with this
operation failing once: out of space, I/O error, short write, failed sync, no file descriptor, no
memory for a mapping, failed read, connection reset. Then both runs are compared step by step.
"""

_RULES = """\
### Invariants

- Whoever asked is answered: with a success, or with one line that says what failed.
- What was acknowledged is there as in the run without a failure (messages, offsets, keys, tables),
  both for users of the running process and for the next process after a kill at that moment.
- What was refused is not there, or the answer says that it may be.
- The same request succeeds when it is tried again, and from then on everything is as in the run
  without a failure, until after a clean stop. Only a failed sync is final: the process must be
  started again.

A run has what was never compared with the code as it is: a workload is compared again once
anything that it imports has changed. The total is of what was compared with the code as it is.
`python -m tests.comparison --workload W KIND N` repeats one failure.
"""


def write(parts: DoneParts[Compared], path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(parts), path)


def _lines(parts: DoneParts[Compared]) -> Iterator[str]:
    current = parts.current()
    total = sum(part.result.failures for part in current)
    violations = [violation for part in current for violation in part.result.violations]
    names = dict.fromkeys(workload_of(part.name) for part in current)
    yield _INTRODUCTION
    told = f"{total:,} single failures over {len(names)} workloads, {len(violations)} violations"
    yield f"**{told}**, on {days_of(current)}."
    yield ""
    seconds = sum(part.seconds for part in current)
    yield f"{seconds / 60:.0f} minutes of a process on {machine()}. {versions()}."
    yield ""
    yield _RULES
    yield "### Workloads"
    yield ""
    yield "| workload | failures | violations | kinds of failures | with the code as it is |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for workload in ALL:
        if done := [part for part in parts if workload_of(part.name) == workload.name]:
            failures = sum(part.result.failures for part in done)
            violated = sum(len(part.result.violations) for part in done)
            kinds = f"{len(workload.failures)} | {sum(part in current for part in done)}"
            yield f"| `{workload.name}` | {failures:,} | {violated} | {kinds} |"
    if violations:
        yield "\n### Violations\n"
        for violation in violations:
            yield f"- {violation}"
