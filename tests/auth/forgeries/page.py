"""The section of docs/reliability.md."""

from __future__ import annotations

import datetime as dt

from tests.auth.forgeries.run import Outcome
from tests.reliability import machine, versions, write_section

_TOP = """\
Written by `python -m tests.auth.forgeries --nightly`.

Signed requests of all codes are forged before they reach the checks of a broker with users and
permissions: bytes of their frames are changed; signatures are made up, cut, extended, and taken
from other requests and users; header fields are renamed, exchanged, added and removed after the
signature; a user without permissions signs requests with any names and bodies; policies are read
from mutated JSON, and compared with RocketMQ's algorithm; signed sends and pulls, honest and
forged, are judged by the kernels of the broker's lane, too.

A violation is a request that reaches a handler although nobody has signed exactly its content, or
without a permission; a send or a pull that the lane accepts and the checks refuse; a decision that
is not RocketMQ's; an exception; an honest request that is refused; or a password in an answer, a
log line or a traceback."""


def write(outcome: Outcome, seed: int, seconds: float) -> None:
    """Write the section."""
    total, wrong = sum(outcome.counts.values()), len(outcome.violations)
    day = dt.datetime.now(tz=dt.UTC).date()
    rows = [f"| {kind} | {count:,} |" for kind, count in outcome.counts.items()]
    lines = [
        *_TOP.splitlines(),
        "",
        f"**{total:,} forgeries, {wrong:,} violations**, on {day}.",
        "",
        f"Seeds from {seed}; {seconds / 60:.1f} minutes on {machine()}.",
        f"{versions()}.",
        "",
        "| kind | forgeries |",
        "| --- | ---: |",
        *rows,
        "",
        f"{outcome.honest:,} honest requests were served.",
        f"{outcome.log_lines:,} log lines were searched.",
    ]
    write_section("Forged requests", lines)
