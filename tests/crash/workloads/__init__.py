"""Scripts for a live store, each in a few dozen operations on files of a few kilobytes."""

from __future__ import annotations

from tests.crash.store_workload import WORKLOADS, StoreWorkload
from tests.crash.workloads import appends, config, derived, later, odd, retention, rolls, stops
from tests.crash.workloads.drawn import PREFIX, drawn

__all__ = [
    "PREFIX",
    "WORKLOADS",
    "appends",
    "config",
    "derived",
    "find",
    "later",
    "odd",
    "retention",
    "rolls",
    "stops",
]


def find(name: str) -> StoreWorkload:
    """Return the workload of a name: one of WORKLOADS, or `drawn-N`.

    Raises:
        KeyError: there is none.
    """
    number = name.removeprefix(PREFIX)
    return drawn(int(number)) if number != name and number.isdigit() else WORKLOADS[name]
