"""The section of docs/reliability.md that a run with a hostile broker writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.client.hostile_broker.case import MOST_MEMORY, Outcome, command
from tests.client.hostile_broker.users import LONGEST
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Hostile broker"

_INTRODUCTION = """\
Written by `python -m tests.client.hostile_broker --nightly`.

Producers and all kinds of consumers talk to a broker and a name server whose responses are mutated:
header fields, bodies, codes, flags, lengths and frames; responses are missing or duplicated, and
floods of unexpected requests arrive. Then all responses are correct again. Connections are objects
and time is virtual, so that minutes take less than a second.
"""

_INVARIANTS = f"""\
### Invariants

- A call returns, or raises a subclass of `MqlakeError`, within {LONGEST:g} s.
- Nothing else is raised in the background or logged as an exception.
- The memory of the process grows by less than {MOST_MEMORY >> 20} MiB in a case.
- Within {LONGEST:g} s of correct responses, the same clients send, poll, pop and receive again.
- Closing leaves no task.

`{command(0).replace("--seed 0", "--seed N")}` repeats a case.
"""


def write(outcomes: Sequence[Outcome], seconds: float, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes, seconds), path)


def _lines(outcomes: Sequence[Outcome], seconds: float) -> Iterator[str]:
    mutated = sum(outcome.mutated for outcome in outcomes)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    hours = sum(outcome.seconds for outcome in outcomes) / 3600
    yield _INTRODUCTION
    yield (
        f"**{mutated:,} mutated answers, {violations} violations**,"
        f" on {datetime.now(UTC):%Y-%m-%d}."
    )
    yield ""
    yield f"Seeds from {outcomes[0].seed}; {seconds / 60:.1f} minutes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield f"{len(outcomes):,} cases, {sum(outcome.calls for outcome in outcomes):,} calls,"
    yield f"{hours:.1f} hours of virtual time."
    yield ""
    yield _INVARIANTS
    for outcome in outcomes:
        if outcome.violations:
            text = "\n".join(outcome.violations)
            yield f"```\n{command(outcome.seed)}\n{text}\n```"
