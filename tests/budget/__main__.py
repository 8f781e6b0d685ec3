"""python -m tests.budget: measure every handler at the limits."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.budget.measuring import Measured, measure_broker, measure_name_server
from tests.budget.meter import BUDGET, Meter, scale
from tests.budget.report import KNOWN, lines, too_long
from tests.reliability import machine, versions, write_section

_TITLE = "Event-loop budget"
_INTRODUCTION = f"""\
Written by `python -m tests.budget --nightly`. Every request code of broker and name server is
served with inputs at the limits: 50,000 topics, 20,000 groups, 490,000 offsets, a topic of 4,096
queues, 10,000 groups of connected clients, messages of 4 MiB, a message with 10,000 equal keys. A
piece is work after which the event loop may serve others: a callback, or a step of a job in slices.
It is measured in processor time of the thread, and divided by how much longer than usual this
machine takes for a fixed piece of work. A piece may take {BUDGET * 1000:.0f} ms.
"""


def main() -> int:
    """Return 0 if no piece of work was too long, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.budget")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--share", type=int, default=1, help="use an n-th of the limits")
    options = parser.parse_args()
    begin, times = time.monotonic(), scale()
    found = asyncio.run(_measured(times, options.share))
    seconds, broken = time.monotonic() - begin, too_long(found, times)
    page = lines(found, times)
    print("\n".join([*page, "", *broken]))
    if options.nightly:
        write_section(_TITLE, [_INTRODUCTION, *_summary(found, broken, seconds), *page])
    return 1 if broken else 0


async def _measured(times: float, share: int) -> list[Measured]:
    meter = Meter()
    with meter.installed(), tempfile.TemporaryDirectory() as directory:
        found = await measure_name_server(meter, times, share)
        return found + await measure_broker(Path(directory) / "store", meter, times, share)


def _summary(found: list[Measured], broken: list[str], seconds: float) -> list[str]:
    known = ", ".join(f"{name} ({times:g} times)" for name, times in KNOWN.items())
    return [
        f"**{len(found)} requests, {len(broken)} violations**, on {datetime.now(UTC):%Y-%m-%d}.",
        "",
        f"{seconds / 60:.1f} minutes on {machine()}. {versions()}.",
        f"More than the budget is allowed for: {known or 'none'}.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
