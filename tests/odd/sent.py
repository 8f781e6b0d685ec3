"""What was sent, and what must come out of it."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from mqlake.formats import record
from mqlake.formats.properties import decode_properties
from mqlake.store.append.checks import Refusal, encode_properties
from mqlake.store.append.message import Message

SEEDS = range(int(os.environ.get("ODD_SEEDS", "1")))
COUNT = int(os.environ.get("ODD_MESSAGES", "60"))
"""Seeds and messages of each test; `make nightly` asks for more."""

ADDED = frozenset(
    (
        *("REAL_TOPIC", "REAL_QID", "DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"),
        *("TIMER_DELIVER_MS", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"),
        *("TIMER_ROLL_TIMES", "TRAN_MSG", "PGROUP", "__transactionId__", "__CRC32#"),
        *(
            "TRANSACTION_CHECK_TIMES",
            "TRAN_PREPARED_QUEUE_OFFSET",
            "CHECK_IMMUNITY_TIME_IN_SECONDS",
        ),
        *(
            "RETRY_TOPIC",
            "ORIGIN_MESSAGE_ID",
            "1ST_POP_TIME",
            "POP_RETRY_GROUP",
            "POP_CK",
            "MSG_REGION",
            "TRACE_ON",
        ),
        *("CLUSTER", "WAIT", "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID", "UNIQ_KEY"),
        *("MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "RECONSUME_TIME", "MIN_OFFSET"),
        *("MAX_OFFSET", "POP_CK_OFFSET", "INNER_NUM", "INNER_BASE"),
    )
)
"""Properties that the system gives a message, or takes away from it, on its way."""


def pairs(data: bytes, without: Collection[str] = ADDED) -> dict[bytes, bytes]:
    """Return the properties of an application in their bytes; of equal names the last."""
    found: dict[bytes, bytes] = {}
    hidden = {name.encode() for name in without}
    for pair in data.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if name and value and name not in hidden:
            found[name] = value
    return found


class Sent(NamedTuple):
    """A message that was accepted."""

    message: Message
    properties: bytes

    @classmethod
    def of(cls, message: Message) -> Sent:
        """Return a message with its properties in their bytes."""
        try:
            return cls(message, encode_properties(message))
        except Refusal as refusal:
            raise AssertionError(f"accepted, but {refusal}: {message!r:.300}") from None

    def check(self, data: bytes, stage: str) -> None:
        """Check the bytes of a record that came out of the message."""
        found = record.decode(data)
        fault, layout = record.check(data, 0, len(data))
        assert layout is not None, (stage, fault)
        start = layout.properties_at
        properties = data[start : start + layout.properties_length]
        message = self.message
        assert found.body == message.body, stage
        assert found.flag == message.flag, stage
        assert pairs(properties) == pairs(self.properties), stage
        expected = decode_properties(self.properties)
        for name in "KEYS", "TAGS":
            assert found.properties.get(name) == expected.get(name), (stage, name)
        if message.born_timestamp:
            assert found.born_timestamp == message.born_timestamp, stage
        if message.born_host:
            assert found.born_host == message.born_host, stage
