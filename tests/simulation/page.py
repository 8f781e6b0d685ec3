"""The section of docs/reliability.md that the runs write."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.reliability import PATH, machine, versions, write_section
from tests.simulation.run import DRAIN, LINGER, command
from tests.simulation.total import Total

TITLE = "Simulation"

_INTRODUCTION = """\
Written by `python -m tests.simulation --nightly`.

Each run is one event loop in which a name server, one or two brokers, a producer and the consumers
of one group run as the product's own code, in simulated time, on a simulated network and on disks
in memory. A seed selects what is sent (single messages, batches, sharding keys, transactions), how
it is read (concurrently, in order, by pop), and the faults: connections that are cut (also in the
middle of frames), half-open, blocked, slow or refused; brokers that are stopped or killed, also in
the middle of a write or of their start; power losses, under `SYNC_FLUSH`; a name server that is
killed or stopped; consumers that join, leave, die or lose power.
"""

_INVARIANTS = f"""\
### Invariants

- Each acknowledged message is consumed at least once. Except with pop, so is each message that is
  stored.
- A message that was not stored, or whose transaction was rolled back, is never consumed.
- Consumers in order never see a message for the first time after a later one of its queue was
  processed.
- A committed offset never passes an unprocessed message.
- Everything is consumed and committed within {DRAIN:g} s after the faults.
- {LINGER:g} s after a client was closed, it has no task, no timer and no connection.
- No task ends with an unhandled exception, and nothing loops without end: a run has a bounded
  number of callbacks.

`{command(0).replace("--seed 0", "--seed N")}` repeats a seed, step by step.
`--log` adds the log with simulated times.
"""


def write(total: Total, first: int, minutes: float, path: Path = PATH) -> None:
    """Write the section.

    Args:
        first: the first seed.
        minutes: how long the runs took.
    """
    write_section(TITLE, _lines(total, first, minutes), path)


def _lines(total: Total, first: int, minutes: float) -> Iterator[str]:
    yield _INTRODUCTION
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    yield f"**{total.runs:,} runs, {len(total.violations)} violations**, on {when}."
    yield ""
    yield f"Seeds from {first}; {minutes:.1f} minutes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield "| counter | |"
    yield "| --- | ---: |"
    yield f"| simulated time | {total.seconds / 3600:,.1f} h |"
    yield f"| callbacks | {total.events:,} |"
    yield f"| processor time of a run, mean | {1000 * total.cpu / max(1, total.runs):.0f} ms |"
    yield f"| messages acknowledged | {total.acknowledged:,} |"
    yield f"| deliveries | {total.deliveries:,} |"
    yield f"| committed offsets compared | {total.observations:,} |"
    for end, count in total.sends.most_common():
        yield f"| sends that ended with: {end} | {count:,} |"
    for kind, count in total.faults.most_common():
        yield f"| faults: {kind} | {count:,} |"
    yield f"| longest time until everything was consumed | {total.drained:.1f} s |"
    yield ""
    yield _INVARIANTS
    for line in total.violations:
        yield f"```\n{line}\n```"
