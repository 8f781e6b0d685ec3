"""Describe records: properties, queue, tags code, key hashes (twin of `compiled.describe`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlake.formats import consume_queue, java_string, properties, sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import index_keys

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs
    from mqlake.dispatch.columns import KeyColumns, RecordColumns
    from mqlake.dispatch.queue_table import QueueTable

_COLUMNS = {
    properties.TAGS.encode(): "tags",
    properties.KEYS.encode(): "keys",
    properties.UNIQ_KEY.encode(): "unique_key",
}


def describe(
    buffer: Bytes,
    records: RecordColumns,
    keys: KeyColumns,
    table: QueueTable,
    delay_levels: Longs,
    *,
    hash_keys: bool,
    index_tags: bool,
) -> int:
    data = buffer.data
    numbers = {queue: number for number, queue in enumerate(table)}
    dialect = Dialect.V5_5 if index_tags else Dialect.V5_3
    count = 0
    for index, row in enumerate(records):
        topic_bytes = _text(data, row, "topic")
        topic = java_string.decode(topic_bytes)
        found = properties.decode_properties(_text(data, row, "properties"))
        _fill_spans(data, row)
        row["tags_code"] = consume_queue.entry_tags_code(
            topic, found, int(row["store_timestamp"]), delay_levels.tolist()
        )
        flags = int(row["sys_flag"])
        row["queue"] = -1
        if sys_flag.is_queued(flags):
            queue = topic_bytes, int(row["queue_id"])
            row["queue"] = numbers.setdefault(queue, len(numbers))
            if len(numbers) > len(table):
                table.add(*queue)
        row["key_start"] = count
        if hash_keys and sys_flag.is_indexed(flags):
            for key in index_keys(topic, found, dialect):
                keys[count] = java_string.index_key_hash(key), index
                count += 1
        row["key_count"] = count - row["key_start"]
    return count


def find_properties(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return name → (position, length) of the value; as `decode_properties`, but in bytes."""
    found: dict[bytes, tuple[int, int]] = {}
    at = 0
    for pair in data.split(properties.PROPERTY_SEPARATOR.encode()):
        name, _, value = pair.partition(properties.NAME_VALUE_SEPARATOR.encode())
        if name and value:
            found[name] = at + len(name) + 1, len(value)
        at += len(pair) + 1
    return found


def _fill_spans(data: memoryview, row: RecordColumns) -> None:
    found = find_properties(_text(data, row, "properties"))
    for name, column in _COLUMNS.items():
        at, length = found.get(name, (0, 0))
        row[f"{column}_at"] = at + row["properties_at"] if length else 0
        row[f"{column}_length"] = length


def _text(data: memoryview, row: RecordColumns, column: str) -> bytes:
    at = int(row[f"{column}_at"])
    return bytes(data[at : at + int(row[f"{column}_length"])])
