"""The section of docs/reliability.md that the runs write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.peer.grpc.kills.run import CONTINUES, Outcome, command
from tests.peer.grpc.kills.traffic import MESSAGE_GROUPS
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Kills under gRPC clients"
_LANGUAGES = {"java": "Java", "node": "Node.js", "python": "Python", "rust": "Rust"}

_INTRODUCTION = f"""\
Written by `python -m tests.peer.grpc.kills --nightly`.

RocketMQ's own gRPC clients, unchanged, send and consume while a broker with the gRPC service
(`ASYNC_FLUSH`), or a broker (`SYNC_FLUSH`) and a proxy before it, are killed with SIGKILL, and
started again at the same addresses, on the same store. For each language, one sender sends plain
messages, and {len(MESSAGE_GROUPS)} send a message group each to a FIFO topic; what is refused is
sent again before its successor. A simple and a push consumer receive the plain messages, and
another push consumer, whose group consumes in order, those of the FIFO topic. The client for Rust
has simple consumers only, and needs a network interface with a hardware address. The next kill
comes as soon as each group of consumers has received something that was sent after the last one,
and up to 20 more messages were delivered.

The clients for Java and Node.js continue by themselves. Those for Python and Rust send their
settings again after minutes, or never: their programs create new clients after each kill.
"""

_INVARIANTS = f"""\
### Invariants

- Each message for which a send succeeded is delivered to each group of consumers, at least once.
- In each message group, the first deliveries have the order in which the messages were sent.
- After a kill, each group receives something new within {CONTINUES:g} s; after the last one, also
  everything that is left.
"""


def write(outcomes: Sequence[Outcome], path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcomes), path)


def _lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    violations = sum(len(outcome.violations) for outcome in outcomes)
    kills = sum(outcome.kills.total() for outcome in outcomes)
    minutes = max(outcome.seconds for outcome in outcomes) / 60
    yield _INTRODUCTION
    yield f"**{kills} kills, {violations} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"{minutes:.1f} minutes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield "| killed | under clients for | kills | seed | everything received after |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for each in outcomes:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(each.kills.items()))
        names = ", ".join(_LANGUAGES[language] for language in sorted(each.languages))
        cells = f"{each.kills.total()} | {each.seed} | {each.drained:.1f} s"
        yield f"| {each.setup}: {kinds} | {names} | {cells} |"
    yield ""
    yield (
        "| clients of | for | sent | refused | delivered | repeated"
        " | longest time until all groups continued |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for each in outcomes:
        for language, counts in sorted(each.languages.items()):
            numbers = counts.acknowledged, counts.refused, counts.deliveries, counts.repeated
            cells = " | ".join(f"{number:,}" for number in numbers)
            name = _LANGUAGES[language]
            yield f"| {each.setup} | {name} | {cells} | {counts.longest:.1f} s |"
    yield ""
    yield _INVARIANTS
    for each in outcomes:
        if each.violations:
            text = "\n".join(each.violations)
            yield f"```\n{command(each)}\n{text}\n```"
