"""Properties of messages that are sent to lite topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mqlake.broker.state.lite.names import LONGEST_LITE_TOPIC
from mqlake.formats.properties import (
    DELAY,
    DELAY_MS,
    DELAY_SEC,
    DELIVER_MS,
    LITE_TOPIC,
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    TRAN_MSG,
)

LONGEST_OFFSET: Final = 19
"""Digits of a queue offset at most."""
_LAST_OFFSET: Final = (1 << 63) - 1
_DELAYS: Final = (DELAY, DELIVER_MS, DELAY_MS, DELAY_SEC)
_LITE: Final = LITE_TOPIC.encode()
_PAIR_END: Final = PROPERTY_SEPARATOR.encode()
_BEGIN: Final = f"{PROPERTY_SEPARATOR}{LITE_TOPIC}{NAME_VALUE_SEPARATOR}".encode()
_DELAY, _DELIVER, _HALF = (name.encode() for name in (DELAY, DELIVER_MS, TRAN_MSG))
"""One of them is in the properties of each message that `waits_by` something."""
_NAME: Final = re.compile(rb"[A-Za-z0-9_-]{1,%d}" % LONGEST_LITE_TOPIC)
_PLACE: Final = (
    f"{MULTI_DISPATCH}{NAME_VALUE_SEPARATOR}%s{PROPERTY_SEPARATOR}"
    f"{MULTI_QUEUE_OFFSET}{NAME_VALUE_SEPARATOR}%d{PROPERTY_SEPARATOR}"
)


def typical_lite_topic(properties: bytes) -> str | None:
    """Return the lite topic that a message is sent to; None if that takes a closer look.

    A closer look decodes the properties, and takes several times as long. It would have the same
    result: a valid name, and nothing for which the message waits.
    """
    if not properties.isascii() or properties.count(_LITE) != 1:
        return None
    if _DELAY in properties or _DELIVER in properties or _HALF in properties:
        return None
    start = properties.find(_BEGIN) + len(_BEGIN)
    end = properties.find(_PAIR_END, start)
    if start < len(_BEGIN) or end < 0 or _NAME.fullmatch(properties, start, end) is None:
        return None
    return properties[start:end].decode()


def waits_by(pairs: Mapping[str, str]) -> str | None:
    """Return the property by which a message waits; None if it does not.

    A message that waits comes after later ones, but its place in the queue is before them.
    """
    if pairs.get(TRAN_MSG) == "true":
        return TRAN_MSG
    return next((name for name in _DELAYS if pairs.get(name, "0") != "0"), None)


def place(queue: str, offset: int = _LAST_OFFSET) -> bytes:
    """Return the properties with the place of a message in a queue; by default, the longest one."""
    return (_PLACE % (queue, offset)).encode()


def longest_place(queue: str) -> int:
    """Return how many bytes `place` returns at most."""
    return len(_PLACE) - len("%s%d") + len(queue.encode()) + LONGEST_OFFSET
