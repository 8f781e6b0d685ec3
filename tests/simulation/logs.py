"""The product's log lines with simulated times."""

from __future__ import annotations

import asyncio
import logging
import sys

from tests.simulation.process import CURRENT


def show() -> None:
    """Print all log lines, with the simulated time and the process that wrote them."""
    logging.basicConfig(
        level=logging.DEBUG, stream=sys.stdout, format="%(when)s %(name)s %(message)s"
    )
    logging.getLogger("numba").setLevel(logging.WARNING)
    logging.getLogger().handlers[0].addFilter(_stamp)


def _stamp(record: logging.LogRecord) -> bool:
    try:
        now = asyncio.get_running_loop().time()
    except RuntimeError:
        record.when = "-"
        return True
    process = CURRENT.get()
    record.when = f"{now:9.4f} {process.name if process else '-'}:"
    return True
