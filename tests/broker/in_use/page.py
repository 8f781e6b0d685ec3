"""The section of docs/reliability.md."""

from __future__ import annotations

import datetime as dt

from tests.broker.in_use.run import SECONDS, Outcome
from tests.reliability import machine, versions, write_section

_TOP = f"""\
Written by `python -m tests.broker.in_use --nightly`.

For {SECONDS:.0f} simulated seconds, an administrator deletes, creates and changes topics and groups
of one broker, restarts and kills it, and makes it a slave and a master again. Meanwhile clients
send plain, delayed, timed, transactional and lite messages, pull, pop, acknowledge some messages,
change the invisible time of others, and keep others until they are visible again. Then each group
gets what is left.

A violation is an acknowledged message of a topic that lives which a group never gets, or which a
new reader does not find; a message of a deleted topic that is delivered after the deletion was
answered; a message that a group gets again although it acknowledged it, unless the broker was
killed or demoted, or the group deleted; an error in the log; or damage that `mqlake verify`
finds."""


def write(outcome: Outcome, seed: int, seconds: float) -> None:
    """Write the section."""
    day = dt.datetime.now(tz=dt.UTC).date()
    lines = [
        *_TOP.splitlines(),
        "",
        f"**{outcome.runs:,} runs, {len(outcome.violations):,} violations**, on {day}.",
        "",
        f"Seeds from {seed}; {seconds / 60:.1f} minutes on {machine()}.",
        f"{versions()}.",
        "",
        f"{outcome.sent:,} messages were acknowledged, and {outcome.deletions:,} topics deleted;",
        f"groups got {outcome.got:,} messages.",
    ]
    write_section("Changes in use", lines)
