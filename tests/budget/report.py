"""What is said of the measurements: which are too long, and the section of docs/reliability.md."""

from __future__ import annotations

from tests.budget.measuring import Measured
from tests.budget.meter import BUDGET

KNOWN: dict[str, float] = {
    # A message of 4 MiB is copied, checked and written in one piece, and dispatched in another,
    # while one of the next requests is served.
    "SEND_MESSAGE": 4,
    "SEND_MESSAGE_V2": 4,
    "SEND_MESSAGE_V2 keys": 4,
    "SEND_BATCH_MESSAGE": 4,
    "CONSUMER_SEND_MSG_BACK": 4,
    # Bodies of 2 MiB are decoded in one call.
    "UPDATE_AND_CREATE_TOPIC_LIST": 3,
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST": 2,
}
"""Requests that hold the loop longer than the budget: how often the budget they may take."""


def too_long(found: list[Measured], scale: float) -> list[str]:
    """Return a line for each request that exceeds the budget."""
    return [
        f"{one.name}: {one.longest.seconds / scale * 1000:.1f} ms without a pause, until"
        f" {one.longest.where}"
        for one in found
        if one.longest.seconds > BUDGET * scale * KNOWN.get(one.name, 1)
    ]


def lines(found: list[Measured], scale: float) -> list[str]:
    """Return the lines of the page."""
    slowest = sorted(found, key=lambda one: one.longest.seconds, reverse=True)
    return [
        "| request | longest piece, ms | in all, ms | answer, bytes |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {one.name} | {one.longest.seconds / scale * 1000:.1f} |"
            f" {one.total / scale * 1000:,.1f} | {one.size:,} |"
            for one in slowest[:25]
        ),
    ]
