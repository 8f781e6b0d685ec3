"""The section of docs/reliability.md."""

from __future__ import annotations

import datetime as dt

from tests.grpc.abuse.run import Outcome
from tests.reliability import machine, versions, write_section

_TOP = """\
Written by `python -m tests.grpc.abuse --nightly`.

Clients of gRPC send what no client should: bytes of honest connections are changed; frames are
removed, repeated, exchanged and made up; blocks of headers, messages, settings and windows are
changed inside of frames that are right; connections are left at any byte. What is sent arrives in
pieces of any size.

A violation is an error that the server logs, a frame of it that is wrong or follows its farewell,
memory or a handler that is left once the client has gone, an honest client that is not served, or
half a second of CPU time for what arrived at a time."""


def write(outcome: Outcome, seed: int, seconds: float) -> None:
    """Write the section."""
    total, wrong = sum(outcome.counts.values()), len(outcome.violations)
    day = dt.datetime.now(tz=dt.UTC).date()
    lines = [
        *_TOP.splitlines(),
        "",
        f"**{total:,} clients, {wrong:,} violations**, on {day}.",
        "",
        f"Seeds from {seed}; {seconds / 60:.1f} minutes on {machine()}.",
        f"{versions()}.",
        "",
        "| kind | clients |",
        "| --- | ---: |",
        *(f"| {kind} | {count:,} |" for kind, count in outcome.counts.items()),
        "",
        "| the server's farewell | connections |",
        "| --- | ---: |",
        *(f"| {end} | {count:,} |" for end, count in outcome.ends.most_common()),
        "",
        f"{outcome.honest:,} honest clients were served between them.",
        f"What arrived at a time took at most {outcome.longest * 1000:.0f} ms of CPU time.",
    ]
    write_section("Abuse of gRPC", lines)
