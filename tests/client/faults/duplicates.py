"""Why messages were delivered more than once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from tests.client.faults.plan import GROUP
from tests.client.faults.world import Event
from tests.client.ledger import Delivery, Ledger

_FAULT = 6.0
"""Seconds before a delivery in which a fault may keep its offset from being committed, or may have
the broker forget that: it writes offsets every five seconds."""
_REBALANCE = 3.0
"""Seconds before a delivery in which a change of the group may still move its queue."""

UNEXPLAINED = "unexplained"


def explain(ledger: Ledger, events: Sequence[Event]) -> Counter[str]:
    """Return how many deliveries repeated an earlier one, by the cause."""
    found: Counter[str] = Counter()
    before: dict[str, Delivery] = {}
    for delivery in ledger.deliveries:
        first = before.get(delivery.message_id)
        if first is not None:
            found[_cause(ledger, events, first, delivery)] += 1
        before[delivery.message_id] = delivery
    return found


def _cause(ledger: Ledger, events: Sequence[Event], first: Delivery, again: Delivery) -> str:
    failures = ledger.failed.get(first.message_id, [])
    if bisect_right(failures, again.at) > bisect_right(failures, first.at):
        return "retry"
    if any(_is_near(event, first, again, _FAULT) for event in events if event.kind not in GROUP):
        return "fault"
    if any(_is_near(event, first, again, _REBALANCE) for event in events if event.kind in GROUP):
        return "rebalance"
    return UNEXPLAINED


def _is_near(event: Event, first: Delivery, again: Delivery, before: float) -> bool:
    return event.begun <= again.at and event.ended >= first.at - before
