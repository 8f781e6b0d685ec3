"""The section of docs/reliability.md that runs of groups write."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.reliability import PATH, machine, versions, write_section
from tests.simulation.group.run import SETTLED, command
from tests.simulation.group.total import Total

TITLE = "Simulation of replication"

_INTRODUCTION = """\
Written by `python -m tests.simulation.group --nightly`.

Each run is one event loop in which two or three brokers of one name copy their log as the product's
own code, in simulated time, on a simulated network and on disks in memory. In one half of the runs
an operator promotes slaves, as [replication.md](replication.md) says; in the other half a simulated
controller does. A seed selects the flush types, sizes, and two to six faults. While a fault
happens, messages are put to the master. After it, all brokers must have the same log again, which
is then checked.
"""

_INVARIANTS = f"""\
### Invariants

- Each message that was acknowledged under `SYNC_MASTER`, or under a controller, is in the log of
  each later master, at its physical offset. The exception is `ASYNC_FLUSH` after a power loss: what
  only such a broker had may be lost.
- The logs are equal, byte for byte, wherever both have something. A broker says that its log and
  its master's differ only if they do.
- The messages of a queue are in the order of their puts, each once.
- What a master shows to consumers never becomes less.
- {SETTLED:g} s after a fault, each broker runs, has dispatched the whole log of the master, and has
  acknowledged it; under a controller it is in the in-sync set.
- Reports from strangers acknowledge nothing.
- No task ends with an unhandled exception, and nothing loops without end.

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
    yield (
        f"**{total.runs:,} runs, {total.rounds:,} faults,"
        f" {len(total.violations)} violations**, on {when}."
    )
    yield ""
    yield f"Seeds from {first}; {minutes:.1f} minutes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield "| counter | |"
    yield "| --- | ---: |"
    yield f"| simulated time | {total.seconds / 3600:,.1f} h |"
    yield f"| callbacks | {total.events:,} |"
    yield f"| processor time of a run, mean | {1000 * total.cpu / max(1, total.runs):.0f} ms |"
    yield f"| messages put | {total.sent:,} |"
    yield f"| messages acknowledged | {total.acknowledged:,} |"
    yield f"| another broker became the master | {total.elections:,} |"
    yield f"| slaves that were given an empty store | {total.emptied:,} |"
    for kind, count in total.faults.most_common():
        yield f"| faults: {kind} | {count:,} |"
    yield f"| longest time until all logs were the same | {total.settled:.1f} s |"
    yield ""
    yield _INVARIANTS
    for line in total.violations:
        yield f"```\n{line}\n```"
