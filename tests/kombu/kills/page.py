"""The section of docs/reliability.md that the runs write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.kombu.kills.run import DRAIN, WORKERS, Outcome, command
from tests.kombu.workers import VISIBILITY
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Celery kills"

_INTRODUCTION = f"""\
Written by `python -m tests.kombu.kills --nightly`.

In each run, a program sends Celery tasks to `mqlake broker`, and {WORKERS} workers with pools of
processes run them (`acks_late`, a visibility timeout of {VISIBILITY} s). Meanwhile a worker with
its pool, a process of a pool, the broker, or a worker and the broker together are killed with
SIGKILL, or a worker or the broker is stopped with SIGTERM. Each is started again within a second,
on the same store. Then the kills end, and everything must run.
"""

_INVARIANTS = f"""\
### Invariants

- Each task for which `delay()` returned runs to its end, at least once.
- Within {DRAIN:g} s after the last kill, everything has run and is acknowledged.
- A worker or a broker that is stopped with SIGTERM ends with exit code 0.

A task runs again if its worker was killed, or if the broker was killed just after it was received
or acknowledged ([celery.md](celery.md), "What is guaranteed").
`{command(0).replace("--seed 0", "--seed N")}` repeats a seed.
"""


def write(outcomes: Sequence[Outcome], path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes), path)


def _lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    violations = sum(len(outcome.violations) for outcome in outcomes)
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    kills: Counter[str] = sum((outcome.kills for outcome in outcomes), Counter())
    yield _INTRODUCTION
    yield f"**{kills.total()} kills, {violations} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"Seeds from {outcomes[0].seed}; {minutes:.1f} minutes on {machine()}."
    yield f"{versions()}, celery {version('celery')}, kombu {version('kombu')}."
    yield ""
    yield "| counter | |"
    yield "| --- | ---: |"
    yield f"| tasks for which `delay()` returned | {sum(each.returned for each in outcomes):,} |"
    yield f"| tasks for which `delay()` raised | {sum(each.failed for each in outcomes):,} |"
    yield f"| runs of tasks | {sum(each.runs for each in outcomes):,} |"
    yield f"| runs that repeat another one | {sum(each.duplicates for each in outcomes):,} |"
    for kind, count in kills.most_common():
        yield f"| faults: {kind} | {count:,} |"
    longest = max(outcome.drained for outcome in outcomes)
    yield f"| longest time until everything was done | {longest:.1f} s |"
    yield ""
    yield _INVARIANTS
    for outcome in outcomes:
        if outcome.violations:
            text = "\n".join(outcome.violations)
            yield f"```\n{command(outcome.seed)}\n{text}\n```"
