"""What producers put into a store: one message, or a batch in its wire encoding.

Upstream: `MessageExtBrokerInner`, `MessageExtBatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mqlake.formats.properties import MAX_LENGTH


class Message(msgspec.Struct, array_like=True, gc=False):
    """One message to put.

    Attributes:
        topic: 1 … 255 bytes of UTF-8 that can name a directory.
        body: as it is to be stored: compressed if `sys_flag` says so.
        tags: the TAGS property; None or "" for none.
        keys: the KEYS property: one text with spaces between keys, or several texts.
        properties: further properties. If one has the name of an attribute here, the attribute
            counts.
        queue_id: the queue of the topic.
        flag: the application's own 32 bits.
        sys_flag: `mqlake.formats.sys_flag`; the bits of IPv6 hosts are set by the store.
        born_timestamp: milliseconds; 0 for the current time.
        born_host: "address:port"; "" for the store's own.
        reconsume_times: how often a consumer had it redelivered.
        prepared_transaction_offset: physical offset of the half message that this one ends.
        delay_level: the DELAY property; 0 for none.
        encoded_properties: the properties as a client sent them; counts instead of `tags`, `keys`,
            `properties` and `delay_level`.
    """

    # Encoded as an array: `put_many` passes a whole list of them to a kernel as MessagePack.
    topic: str
    body: bytes
    tags: str | None = None
    keys: str | Sequence[str] = ()
    properties: Mapping[str, str] | None = None
    queue_id: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: str = ""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    delay_level: int = 0
    encoded_properties: bytes | None = None


class MessageBatch(msgspec.Struct):
    """Messages of one queue that a client sent in one request; all or none are put.

    Attributes:
        body: the messages, consecutively, as `MessageDecoder.encodeMessages` writes them
            (docs/live-store.md); each has its own flag, body and properties.
        encoded_properties: the properties of the batch itself; stored only with an inner batch.
        longest_properties: maximum bytes of properties of each message.
        is_inner: store the batch as one record, an inner batch, which its consumers split. Its
            topic must have batch consume queues.

    The other attributes are as in `Message`, for all messages of the batch.
    """

    topic: str
    body: bytes
    queue_id: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: str = ""
    reconsume_times: int = 0
    encoded_properties: bytes | None = None
    longest_properties: int = MAX_LENGTH
    is_inner: bool = False
