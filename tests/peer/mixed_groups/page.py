"""The section of docs/reliability.md that the runs write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.peer.mixed_groups.run import MOST, PATIENCE, QUEUES, Outcome
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Groups of Java and Python"

_INTRODUCTION = f"""\
Written by `python -m tests.peer.mixed_groups --nightly`.

One to {MOST} consumers of RocketMQ's client 5.5.0 and one to {MOST} of mqlake's share each group,
and join and leave every few seconds. Each group's topic has {QUEUES} queues and gets 30 to 50
messages a second; handlers fail from time to time. There are four groups: concurrent, in order,
broadcasting, and one whose consumers pop by a setting at the broker. They run with RocketMQ's
broker 5.5.0 first, then with mqlake's.
"""

_INVARIANTS = f"""\
### Invariants

- Each acknowledged message is processed by a member at most {PATIENCE:g} s after the last send;
  with broadcasting, by each present member.
- A committed offset never passes a message that no member, Java or Python, has processed.
- In order, no two members handle messages of a queue at the same time, and no member sees a message
  for the first time after a later one was processed.
- Each repeated delivery follows a failure, or a change of the group within a few seconds.
- Members leave within 30 s.
"""


def write(outcomes: dict[str, Sequence[Outcome]], minutes: float, path: Path = PATH) -> None:
    """Write the section; the outcomes are by broker."""
    write_section(TITLE, _lines(outcomes, minutes), path)


def _lines(outcomes: dict[str, Sequence[Outcome]], minutes: float) -> Iterator[str]:
    found = [text for some in outcomes.values() for each in some for text in each.violations]
    yield _INTRODUCTION
    yield f"**{minutes:.0f} minutes, {len(found)} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"On {machine()}. {versions()}."
    yield ""
    yield (
        "| broker | group | messages | handled by Java | by Python | joins and leaves |"
        " offsets compared | repeated | drained |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |"
    for broker, some in outcomes.items():
        for each in some:
            yield (
                f"| {broker} | {each.mode} | {each.sent:,} | {each.deliveries['java']:,} |"
                f" {each.deliveries['python']:,} | {each.changes.total()} |"
                f" {each.observations:,} | {_causes(each.repeated)} | {each.drained:.1f} s |"
            )
    yield ""
    yield _INVARIANTS
    for text in found:
        yield f"- violation: {text}"


def _causes(repeated: Counter[str]) -> str:
    return ", ".join(f"{count:,} ({cause})" for cause, count in repeated.most_common()) or "none"
