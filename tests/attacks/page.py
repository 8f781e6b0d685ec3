"""The section of docs/reliability.md that a run of all attacks writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.reliability import PATH, machine, versions, write_section

TITLE = "Attacks"

_INTRODUCTION = """\
Written by `python -m tests.attacks --nightly`. A broker in a process of its own, with a name server
in the same event loop, is attacked over the network, while a well-behaved client continues to send
and pull, and must get an answer to every request. The stall is the longest time in which the event
loop served no request, in processor time of its thread. The memory is the largest resident size
(RSS). A full broker has as many topics, groups and offsets as the limits allow: the two attacks on
it begin with 450 MiB. `make test` runs the largest attacks with a sixteenth of their requests, and
a sixteenth of the limits that these reach.
"""


class Line(NamedTuple):
    """What one attack cost.

    Attributes:
        title: what the attacker does.
        stall: seconds.
        peak: bytes.
        answers: requests of the well-behaved client that were answered.
        slowest: seconds until the last of them was.
    """

    title: str
    stall: float
    peak: int
    answers: int
    slowest: float


def read(path: Path) -> list[Line]:
    """Return the lines that attacks have added to a file."""
    return sorted(Line(*json.loads(line)) for line in path.read_text().splitlines())


def write(lines: list[Line], violations: int, seconds: float, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _text(lines, violations, seconds), path)


def _text(lines: list[Line], violations: int, seconds: float) -> Iterator[str]:
    yield _INTRODUCTION
    yield (
        f"**{len(lines)} attacks, {violations} violations, longest stall"
        f" {max(line.stall for line in lines) * 1000:.0f} ms**, on {datetime.now(UTC):%Y-%m-%d}."
    )
    yield ""
    yield f"{seconds / 60:.1f} minutes on {machine()}. {versions()}."
    yield ""
    yield (
        "| attack | longest stall, ms | most memory, MiB | requests of the other client"
        " | its slowest request, ms |"
    )
    yield "| --- | ---: | ---: | ---: | ---: |"
    for title, stall, peak, answers, slowest in lines:
        yield (
            f"| {title} | {stall * 1000:.0f} | {peak >> 20} | {answers:,} | {slowest * 1000:.0f} |"
        )
