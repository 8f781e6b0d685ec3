"""Convert rows to messages."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlake.client.message import Message
from mqlake.client.message_json import NOT_SENT_AGAIN
from mqlake.errors import FormatError
from mqlake.formats.properties import KEYS, SHARDING_KEY, TAGS, UNIQ_KEY
from mqlake.protocol.messages.body_compression import decompress
from mqlake.spark.sink.columns import take


def messages(batch: Any, topic: str | None) -> Iterator[Message]:
    """Yield the messages of a `pyarrow.RecordBatch` with the columns of the sink.

    A column overrides the property of the same name. Properties that RocketMQ sets are left out, so
    that a message that was read is not delayed or retried when it is written again. Bodies that
    were read compressed are decompressed.

    Args:
        topic: the topic of all messages; None if the rows have one.

    Raises:
        FormatError: a row cannot be sent.
    """
    columns = take(batch)
    count = len(batch)
    nothing = [None] * count

    def values(name: str) -> list[Any]:
        return columns[name].to_pylist() if name in columns else nothing

    rows = zip(
        values("body"),
        values("topic"),
        values("properties"),
        values("tags"),
        values("keys"),
        values("uniqKey"),
        values("delayLevel"),
        values("flag"),
        values("sysFlag"),
        strict=True,
    )
    for body, of_row, pairs, tags, keys, unique_key, delay_level, flag, sys_flag in rows:
        if body is None:
            raise FormatError("a row has no body: it is null")
        to = topic or of_row
        if not to:
            raise FormatError("a row has no topic: it is null")
        given = dict(pairs or ())
        properties = {name: text for name, text in given.items() if name not in NOT_SENT_AGAIN}
        if key := unique_key or given.get(UNIQ_KEY):
            properties[UNIQ_KEY] = key
        yield Message(
            topic=to,
            body=decompress(body, sys_flag or 0),
            tags=given.get(TAGS) if tags is None else tags,
            keys=given.get(KEYS, "") if keys is None else keys,
            properties=properties,
            sharding_key=given.get(SHARDING_KEY),
            delay_level=delay_level or 0,
            flag=flag or 0,
        )
