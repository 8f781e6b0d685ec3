"""Headers of requests that search for messages.

Upstream: `QueryMessageRequestHeader`, `QueryMessageResponseHeader`, `ViewMessageRequestHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header, Int32, Int64


class QueryMessageHeader(Header):
    """QUERY_MESSAGE.

    Attributes:
        begin_timestamp, end_timestamp: store times between which messages are, milliseconds.
        index_type: "T" where the key is a tag, "U" a unique key; else any key.
        is_unique_key: sent by clients up to 5.4 where the key is a unique key.
    """

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    index_type: str | None = None
    is_unique_key: bool = msgspec.field(default=False, name="_UNIQUE_KEY_QUERY")


class QueryMessageAnswerHeader(Header):
    """The answer: how far the index is (milliseconds, physical offset)."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageHeader(Header):
    """VIEW_MESSAGE_BY_ID.

    Attributes:
        offset: physical offset of the message.
    """

    offset: Int64
    topic: str | None = None
