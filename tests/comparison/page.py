"""The section of docs/reliability.md that a run of the comparison writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.comparison.all import ALL
from tests.comparison.done import Compared, Done
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


def write(done: Done, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(list(done.in_order())), path)


def _lines(compared: Sequence[Compared]) -> Iterator[str]:
    current = [each for each in compared if each.is_current]
    names = dict.fromkeys(each.workload for each in compared)
    total = sum(each.failures for each in current)
    violations = [violation for each in current for violation in each.violations]
    days = sorted({each.day for each in current})
    yield _INTRODUCTION
    told = f"{total:,} single failures over {len(names)} workloads, {len(violations)} violations"
    yield f"**{told}**, on {' to '.join(dict.fromkeys([days[0], days[-1]]))}." if days else told
    yield ""
    seconds = sum(each.seconds for each in current)
    yield f"{seconds / 60:.0f} minutes of a process on {machine()}. {versions()}."
    yield ""
    yield _RULES
    yield "### Workloads"
    yield ""
    yield "| workload | failures | violations | with the code as it is | date |"
    yield "| --- | ---: | ---: | --- | --- |"
    for name in names:
        yield _row(name, [each for each in compared if each.workload == name])
    if violations:
        yield "\n### Violations\n"
        for violation in violations:
            yield f"- {violation}"


def _row(name: str, parts: Sequence[Compared]) -> str:
    failures = sum(each.failures for each in parts)
    violations = sum(len(each.violations) for each in parts)
    whole = len(next(each for each in ALL if each.name == name).failures)
    current = sum(each.is_current for each in parts)
    told = "yes" if current == whole else f"{current} of {whole} kinds of failures"
    return f"| `{name}` | {failures:,} | {violations} | {told} | {max(p.day for p in parts)} |"
