"""The section of docs/reliability.md that the runs write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.client.faults.run import DRAIN, MOST_CPU, Outcome, command
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Client faults"

_INTRODUCTION = """\
Written by `python -m tests.client.faults --nightly`.

In each run, producers send single messages, batches, messages with sharding keys and transactions,
and two or more consumers of one group read them, concurrently (even seeds) or in order (odd seeds).
Connections are cut (also in the middle of frames), stalled, slowed, refused, accepted without ever
being answered, or dropped by the broker alone. The broker, in a process of its own, is killed with
SIGKILL or stopped, and started again. The name server is stopped and started again. Consumers join
and leave. Then the faults end, and everything must be consumed.
"""

_INVARIANTS = f"""\
### Invariants

- Each acknowledged message is consumed at least once, and so is each message that is stored.
- A message whose send raised `NotStoredError` or `NoRouteError`, or whose transaction was rolled
  back, is never consumed.
- Each repeated delivery has a cause shortly before it: a retry, a change of the group's members, or
  a fault.
- Consumers in order never see a message for the first time after a later one of its queue was
  processed.
- A committed offset never passes an unprocessed message.
- A consumer without any connection uses less than {MOST_CPU:.0%} of a processor.
- Everything is consumed and committed within {DRAIN:g} s after the faults.
- Closing leaves no task, no socket and no object of the client.

`{command(0).replace("--seed 0", "--seed N")}` repeats a seed.
"""


_FAULTS = {
    "cut": "cut connections",
    "cut in frames": "cut connections in the middle of frames",
    "half-open": "drop connections at the broker alone",
    "refuse": "refuse connections",
    "refuse the name server": "refuse connections to the name server",
    "slow": "slow connections down",
    "stall": "stall connections",
    "swallow": "accept connections, and never answer",
    "swallow the name server": "accept connections to the name server, and never answer",
}
"""Kinds of faults whose names a reader of the page cannot know, and what the page calls them."""


def write(outcomes: Sequence[Outcome], path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes), path)


def _lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    violations = sum(len(outcome.violations) for outcome in outcomes)
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    yield _INTRODUCTION
    yield f"**{len(outcomes)} runs, {violations} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"Seeds from {outcomes[0].seed}; {minutes:.1f} minutes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield "| counter | |"
    yield "| --- | ---: |"
    yield f"| messages acknowledged | {sum(each.acknowledged for each in outcomes):,} |"
    yield f"| deliveries | {sum(each.deliveries for each in outcomes):,} |"
    yield f"| committed offsets compared | {sum(each.observations for each in outcomes):,} |"
    for cause, count in _total(each.duplicates for each in outcomes):
        yield f"| deliveries that repeat another one, cause: {cause} | {count:,} |"
    for end, count in _total(each.sends for each in outcomes):
        yield f"| sends that ended with: {end} | {count:,} |"
    for kind, count in _total(each.events for each in outcomes):
        yield f"| faults: {_FAULTS.get(kind, kind)} | {count:,} |"
    yield f"| longest time until everything was consumed | {_longest(outcomes):.1f} s |"
    cpu = max(outcome.cpu for outcome in outcomes)
    yield f"| most processor time of a consumer that was cut off | {cpu:.1%} |"
    first, last = outcomes[len(outcomes) // 10].resident, outcomes[-1].resident
    yield f"| memory after a tenth of the runs, and after all | {_mib(first)}, {_mib(last)} |"
    yield ""
    yield _INVARIANTS
    for outcome in outcomes:
        if outcome.violations:
            text = "\n".join(outcome.violations)
            yield f"```\n{command(outcome.seed)}\n{text}\n```"


def _total(counters: Iterable[Counter[str]]) -> list[tuple[str, int]]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total.most_common()


def _longest(outcomes: Sequence[Outcome]) -> float:
    return max(outcome.drained for outcome in outcomes)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"
