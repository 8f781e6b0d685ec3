"""Properties as a broker stores them: the producer's, and those that the broker adds."""

from __future__ import annotations

from mqlake.broker.settings import BrokerSettings
from mqlake.errors import FormatError
from mqlake.formats.message_batch import decode_batch, encode_batch
from mqlake.formats.own_properties import (
    CLUSTER,
    MSG_REGION,
    POP_GROUP,
    POP_RECEIPT,
    TRACE_ON,
)
from mqlake.formats.properties import (
    CANCEL,
    DELAY,
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    TRAN_MSG,
    UNIQ_KEY,
    decode_properties,
    encode_pairs,
)
from mqlake.formats.property_edits import edit
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.unique_keys import UniqueKeys

_UNIQUE_KEY = f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}"
_LATER_KEY = PROPERTY_SEPARATOR + _UNIQUE_KEY
_POP_GROUP = POP_GROUP.encode()
_LIGHT = "INNER_MULTI_"
"""Begins the names of both properties that say which light queues a message is in."""
_DROPPED = (POP_RECEIPT, CANCEL, MULTI_DISPATCH, MULTI_QUEUE_OFFSET)
_DROPPED_PAIRS = tuple(f"{name}{NAME_VALUE_SEPARATOR}".encode() for name in _DROPPED)
"""How pairs with these names begin. The kernel of the lane leaves batches that have one."""
_MOST_EDITED = 1000
"""Messages of a batch whose properties are looked at one by one."""
HALF = f"{TRAN_MSG}{NAME_VALUE_SEPARATOR}true".encode()
"""Present in the properties of every half message."""

Stored = tuple[bytes, str]
"""The stored properties, and the message's unique key."""


class StoredProperties:
    """Converts the properties that producers send to those that are stored.

    It adds the cluster, the region, whether the broker is traced, and a unique key if the message
    has none. It drops what producers must not set: a receipt of pop consumption, the name of a
    message that is to be cancelled, which only a recall may give, and places in light queues, which
    would let all later messages of a lite topic be lost.

    Attributes:
        own: the broker's bytes, which follow the producer's.
    """

    def __init__(self, settings: BrokerSettings, keys: UniqueKeys) -> None:
        self._keys = keys
        own = {
            MSG_REGION: settings.region_id,
            TRACE_ON: "true" if settings.trace_on else "false",
            CLUSTER: settings.broker_cluster_name,
        }
        self.own = encode_pairs(own).decode()

    def of(self, text: str | None) -> Stored:
        """Return the properties to store for those of a request."""
        if not text:
            return self._with_key("")
        text = allowed(text)
        if text and text[-1] != PROPERTY_SEPARATOR:
            text += PROPERTY_SEPARATOR
        start = text.rfind(_LATER_KEY)
        if start >= 0:
            start += len(_LATER_KEY)
        elif text.startswith(_UNIQUE_KEY):
            start = len(_UNIQUE_KEY)
        end = text.find(PROPERTY_SEPARATOR, start)
        if start < 0 or start == end:
            return self._with_key(text)
        # If a name occurs twice, readers take the last one: the broker's, not the producer's.
        return (text + self.own).encode(), text[start:end]

    def _with_key(self, text: str) -> Stored:
        key = self._keys.next()
        return f"{text}{_UNIQUE_KEY}{key}{PROPERTY_SEPARATOR}{self.own}".encode(), key


def allowed(text: str) -> str:
    """Return the properties of a message without those that producers must not set."""
    if POP_RECEIPT in text or CANCEL in text or _LIGHT in text:
        return edit(text.encode(), _DROPPED).decode()
    return text


def without_pop_group(properties: bytes) -> bytes:
    """Return the properties of a message to a retry topic without the group that popped it.

    A client that copies all properties of a message also copies this one, and the broker would hide
    the copy from the group of the retry topic.
    """
    return edit(properties, (POP_GROUP,)) if _POP_GROUP in properties else properties


def without_dropped(body: bytes) -> bytes:
    """Return the body of a batch whose messages have no property that producers must not set.

    Raises:
        RemotingError: MESSAGE_ILLEGAL: too many messages may have one.
    """
    if not any(pair in body for pair in _DROPPED_PAIRS):
        return body
    messages: list[tuple[int, bytes, bytes]] = []
    try:
        for flag, at, length, pairs_at, pairs_length in decode_batch(body):
            pairs = edit(body[pairs_at : pairs_at + pairs_length], _DROPPED)
            messages.append((flag, body[at : at + length], pairs))
            if len(messages) > _MOST_EDITED:
                reason = (
                    f"a batch of more than {_MOST_EDITED} messages cannot have properties that "
                    f"brokers set: {', '.join(_DROPPED)}"
                )
                raise RemotingError(ResponseCode.MESSAGE_ILLEGAL, reason)
    except FormatError:
        return body  # The store refuses it.
    return encode_batch(messages)


def is_half(properties: bytes, reconsume_times: int) -> bool:
    """Return whether a message with these properties is the half message of a transaction."""
    pairs = decode_properties(properties)
    is_again = reconsume_times > 0 and DELAY in pairs
    return pairs.get(TRAN_MSG) == "true" and not is_again
