"""What producers hand to a store: one message, or a batch in its wire encoding.

Upstream: `MessageExtBrokerInner`, `MessageExtBatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mqlake.formats.properties import MAX_LENGTH


class Message(msgspec.Struct, array_like=True, gc=False):
    """One message to be put.

    Attributes:
        topic: 1 … 255 bytes of UTF-8 that can name a directory.
        body: as it is to be stored: compressed where `sys_flag` says so.
        tags: of the TAGS property; None or "" for none.
        keys: of the KEYS property: one text, parted by spaces, or several texts.
        properties: further ones. Where one of them is named like one of the attributes here, the
            attribute counts.
        queue_id: of the topic's queue.
        flag: the application's own 32 bits.
        sys_flag: `mqlake.formats.sys_flag`; the bits of IPv6 hosts are set by the store.
        born_timestamp: milliseconds; 0 for now.
        born_host: "address:port"; "" for the store's own.
        reconsume_times: how often a consumer gave it back.
        prepared_transaction_offset: physical offset of the half message that this one ends.
        delay_level: of the DELAY property; 0 for none.
        encoded_properties: the properties as a client sent them; counts instead of `tags`, `keys`,
            `properties` and `delay_level`.
    """

    # Laid out as an array: `put_many` hands a whole list of them to a kernel as MessagePack.
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
    """Messages of one queue that a client sent as one, to be put together or not at all.

    Attributes:
        body: the messages, one after the other, as `MessageDecoder.encodeMessages` writes them
            (docs/live-store.md); each has its own flag, body and properties.
        encoded_properties: of the batch itself; stored only with an inner batch.
        longest_properties: bytes of properties that each message may have.
        is_inner: store the batch as one record, an inner batch, which its consumers take apart. Its
            topic must have batch consume queues.

    The rest as in `Message`, for all messages of the batch.
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
