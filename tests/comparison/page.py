"""The section of docs/reliability.md that a run of the comparison writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.comparison.draw import Tally
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

`python -m tests.comparison --workload W KIND N` repeats one failure.
"""


def write(tallies: Sequence[Tally], seconds: float, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(tallies, seconds), path)


def _lines(tallies: Sequence[Tally], seconds: float) -> Iterator[str]:
    total = sum(tally.failures.total() for tally in tallies)
    violations = [violation for tally in tallies for violation in tally.violations]
    yield _INTRODUCTION
    told = f"{total:,} single failures over {len(tallies)} workloads, {len(violations)} violations"
    yield f"**{told}**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"{seconds / 60:.1f} minutes on {machine()}. {versions()}."
    yield ""
    yield _RULES
    yield "### Workloads"
    yield ""
    yield "| workload | failures | violations |"
    yield "| --- | ---: | ---: |"
    for tally in tallies:
        yield f"| `{tally.name}` | {tally.failures.total():,} | {len(tally.violations)} |"
    if violations:
        yield "\n### Violations\n"
        for violation in violations:
            yield f"- {violation}"
