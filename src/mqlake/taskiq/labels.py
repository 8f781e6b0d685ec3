"""The delivery time of a task, from its labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from mqlake.errors import FormatError


def delivery_time(labels: Mapping[str, object], now: int) -> int | None:
    """Return when a broker is to deliver a task, by its label `delay` or `eta`.

    Args:
        now: milliseconds since 1970.

    Returns:
        Milliseconds since 1970; None to deliver at once.

    Raises:
        FormatError: a label cannot be read, or both are given.
    """
    delay, eta = labels.get("delay"), labels.get("eta")
    if delay is not None and eta is not None:
        raise FormatError("a task can have only one of the labels delay and eta")
    due = None
    if delay is not None:
        due = now + _milliseconds(delay)
    elif eta is not None:
        due = _time(eta)
    return due if due is not None and due > now else None


def _milliseconds(delay: object) -> int:
    try:
        seconds = float(str(delay))
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise FormatError(f"label delay: {delay!r} is not a number of seconds")
    return round(seconds * 1000)


def _time(eta: object) -> int:
    try:
        time = eta if isinstance(eta, datetime) else datetime.fromisoformat(str(eta))
    except ValueError:
        raise FormatError(f"label eta: {eta!r} is not a time in ISO 8601") from None
    if time.tzinfo is None:
        raise FormatError(f"label eta: {eta!r} has no time zone")
    return round(time.timestamp() * 1000)
