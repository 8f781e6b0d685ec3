"""python -m tests.budget: measure every handler at the limits."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.budget.expiry import POPS, measure_expiry
from tests.budget.measured import Measured
from tests.budget.measuring import measure_broker, measure_name_server
from tests.budget.meter import BUDGET, FIXED, FIXED_WORK, Meter
from tests.budget.report import lines, too_long
from tests.reliability import machine, versions, write_section

_TITLE = "Event-loop budget"
_INTRODUCTION = f"""\
Written by `python -m tests.budget --nightly`. Every request code of broker and name server is
served with inputs at the limits: 50,000 topics, 20,000 groups, 490,000 offsets, a topic of 4,096
queues, 10,000 groups of connected clients, messages of 4 MiB, batches of 4 MiB, a message with
10,000 equal keys. What a request causes later counts, too: the dispatch of its messages. {POPS:,}
pops expire together. A piece is work after which the event loop may serve others: a callback, or a
step of a job in slices. It is measured in processor time of the thread, and divided by how much
longer than {FIXED * 1000:.0f} ms this machine takes for a fixed piece of work just then:
{FIXED_WORK}. A piece may take {BUDGET * 1000:.0f} ms.
"""


def main() -> int:
    """Return 0 if no piece of work was too long, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.budget")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--share", type=int, default=1, help="use an n-th of the limits")
    options = parser.parse_args()
    begin = time.monotonic()
    found = asyncio.run(_measured(options.share))
    seconds, broken = time.monotonic() - begin, too_long(found)
    page = lines(found)
    print("\n".join([*page, "", *broken]))
    if options.nightly:
        write_section(_TITLE, [_INTRODUCTION, *_summary(found, broken, seconds), *page])
    return 1 if broken else 0


async def _measured(share: int) -> list[Measured]:
    meter = Meter()
    with meter.installed(), tempfile.TemporaryDirectory() as directory:
        found = await measure_name_server(meter, share)
        found += await measure_broker(Path(directory) / "store", meter, share)
        for are_stored in (False, True):
            path = Path(directory) / f"expiry-{are_stored}"
            found.append(await measure_expiry(path, meter, share, are_stored=are_stored))
        return found


def _summary(found: list[Measured], broken: list[str], seconds: float) -> list[str]:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return [
        f"**{len(found)} measurements, {len(broken)} violations**, on {today}.",
        "",
        f"{seconds / 60:.1f} minutes on {machine()}, {_slowness(found)}. {versions()}.",
        "",
    ]


def _slowness(found: list[Measured]) -> str:
    least, most = (kind(one.slowness for one in found) for kind in (min, max))
    return f"which took {least:.1f} to {most:.1f} times the intended time for the fixed work"


if __name__ == "__main__":
    sys.exit(main())
