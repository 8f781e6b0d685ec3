"""Messages of kombu as the bodies of RocketMQ messages, and the time of their delivery."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, cast

from mqlake.client.message import Message, ReceivedMessage
from mqlake.kombu.border import Payload, dumps, loads

_EARLY = 1000
"""Milliseconds by which a broker delivers before the ETA: the worker waits for the rest."""
_SHORTEST = 3000
"""Milliseconds of the shortest delay that a broker is asked for: its timer works in seconds."""
_KEY = re.compile(r"[\w.@-]{1,128}", re.ASCII)


def message_of(topic: str, payload: Payload, deliver_at: int | None = None) -> Message:
    """Return a payload as a message; the id of a Celery task is its key."""
    headers = payload.get("headers")
    task = cast("dict[str, Any]", headers).get("id") if isinstance(headers, dict) else None
    keys = task if isinstance(task, str) and _KEY.fullmatch(task) else ""
    return Message(topic=topic, body=dumps(payload).encode(), keys=keys, deliver_at=deliver_at)


def payload_of(message: ReceivedMessage) -> Payload | None:
    """Return the payload of a message, None if it is not one of kombu's."""
    if message.body_fault is not None:
        return None
    try:
        found = loads(message.body)
    except Exception:  # noqa: BLE001 (kombu's decoders of types may raise anything)
        return None
    if not isinstance(found, dict):
        return None
    payload = cast("Payload", found)
    properties = payload.get("properties")
    if not isinstance(properties, dict) or not isinstance(payload.get("body"), str):
        return None
    info = cast("Payload", properties).get("delivery_info")
    return payload if isinstance(info, dict) else None


def is_task(payload: Payload) -> bool:
    """Return whether a payload is a Celery task."""
    headers = payload.get("headers")
    return isinstance(headers, dict) and "task" in headers


def is_reply(payload: Payload) -> bool:
    """Return whether a payload is a result that one client waits for."""
    return bool(payload["properties"].get("correlation_id")) and not is_task(payload)


def mark_redelivered(payload: Payload, message: ReceivedMessage) -> None:
    """Note in a payload whether its message is a redelivery."""
    payload["properties"]["delivery_info"]["redelivered"] = message.reconsume_times > 0


def routing_key_of(payload: Payload) -> str:
    """Return the routing key with which a payload was published."""
    return str(payload["properties"]["delivery_info"].get("routing_key") or "")


def exchange_of(payload: Payload) -> str:
    """Return the exchange to which a payload was published, "" if it was sent to a queue."""
    return str(payload["properties"]["delivery_info"].get("exchange") or "")


def delivery_time(payload: Payload, now: int, max_delay: int) -> int | None:
    """Return when a broker should deliver a Celery task that has an ETA.

    Args:
        now: milliseconds since 1970.
        max_delay: the maximum time in milliseconds that a broker delays a message. A task that is
            due later is delivered after that time, and its worker waits for the rest.

    Returns:
        Milliseconds since 1970; None to deliver at once.
    """
    headers = payload.get("headers")
    eta = cast("dict[str, Any]", headers).get("eta") if isinstance(headers, dict) else None
    if not isinstance(eta, str):
        return None
    try:
        due = datetime.fromisoformat(eta)
    except ValueError:
        return None
    if due.tzinfo is None:  # Only the worker knows the time zone.
        return None
    at = min(int(due.timestamp() * 1000) - _EARLY, now + max_delay)
    return at if at - now >= _SHORTEST else None
