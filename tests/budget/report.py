"""What is said of the measurements: which are too long, and the section of docs/reliability.md."""

from __future__ import annotations

from tests.budget.measured import Measured
from tests.budget.meter import BUDGET

_SHOWN = 25


def too_long(found: list[Measured], allowance: float = 1) -> list[str]:
    """Return a line for each request that takes more than `allowance` times the budget."""
    return [
        f"{one.name}: {one.milliseconds:.1f} ms without a pause, until {one.longest.where}"
        for one in found
        if one.milliseconds > allowance * BUDGET * 1000
    ]


def lines(found: list[Measured]) -> list[str]:
    """Return the lines of the page."""
    slowest = sorted(found, key=lambda one: one.milliseconds, reverse=True)
    return [
        "| request | longest piece, ms | in all, ms | answer, bytes |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {one.name} | {one.milliseconds:.1f} | {one.in_all:,.1f} | {one.size:,} |"
            for one in slowest[:_SHOWN]
        ),
    ]
