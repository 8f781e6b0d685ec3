"""Parquet files of a table: their description, and how to write one."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from mqlake.lake.files.compression import codecs, leaves
from mqlake.lake.files.lake_files import LakeFiles

ROW_GROUP = 32 << 20
"""Approximate bytes of Arrow columns in a row group, which a reader holds in memory."""

_COUNTED = (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_string)

LONGEST_BOUND = 64
"""Maximum characters of a text that is a bound. Longer ones would enlarge the table's log."""

_LAST_CHARACTER, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)

BLOOM = "uniqKey"
"""The column of merged files with a Bloom filter: its values are looked up one by one."""

_DISTINCT = frozenset(
    {
        "body",
        "msgId",
        "uniqKey",
        "keys",
        "queueOffset",
        "physicalOffset",
        "bodyCrc",
        "properties.key_value.value",
    }
)
"""Leaves of the source's columns whose values hardly repeat."""

_FALSE_HITS = 0.01


class DataFile(msgspec.Struct, frozen=True):
    """A Parquet file that is complete and durable.

    Attributes:
        path: absolute, or a URL.
        topic, day: of all its rows; the day is the UTC day of the store time, as YYYY-MM-DD. They
            are "" for a file of a table that is not partitioned by them.
        size: bytes.
        least, most: bounds of each number, time and text, in the form of Delta Lake's log.
    """

    path: str
    topic: str
    day: str
    rows: int
    size: int
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}


class FileWriter:
    """Writes one data file under a unique name, which no other attempt uses.

    Args:
        stem: the beginning of the name.
        schema: Arrow schema of its columns.
        group: rows of a row group, if it has Bloom filters.
    """

    def __init__(
        self, files: LakeFiles, directory: str, stem: str, schema: Any, group: int | None = None
    ) -> None:
        self.path = f"{directory}/{stem}-{uuid.uuid4().hex}.parquet"
        self._files, self._file = files, files.create(self.path)
        self._schema = schema
        self._rows = 0
        self._columns: dict[str, Any] = {
            "use_dictionary": _repeated(schema),
            "bloom_filter_options": _bloom(schema, group),
        }
        self._writer: Any = None

    @property
    def size(self) -> int:
        """Number of bytes written."""
        return self._file.tell()

    def write(self, batches: Sequence[Any]) -> None:
        """Write batches of this schema as one row group. The first one decides the codecs."""
        table = pa.Table.from_batches(batches, self._schema)
        if self._writer is None:
            self._writer = self._open(table)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._rows += table.num_rows

    def _open(self, rows: Any) -> Any:
        compression: Any = codecs(rows)
        return parquet.ParquetWriter(
            self._file, self._schema, compression=compression, **self._columns
        )

    def finish(self, topic: str, day: str) -> DataFile:
        """Complete a file that has rows; return once it is durable."""
        self._writer.close()
        size = self._files.complete(self.path, self._file)
        least, most = _bounds(self._files.metadata(self.path), self._schema)
        return DataFile(
            path=self.path, topic=topic, day=day, rows=self._rows, size=size, least=least, most=most
        )

    def discard(self) -> None:
        """Remove the file."""
        if self._writer is not None:
            # Otherwise pyarrow writes the end of the file when the writer is destroyed, and prints
            # that the file is closed.
            self._writer.is_open = False
        self._file.close()
        self._files.remove(self.path)


def _bounds(metadata: Any, schema: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        index = schema.get_field_index(name)
        if index < 0 or not any(is_kind(schema.field(index).type) for is_kind in _COUNTED):
            continue
        groups = range(metadata.num_row_groups)
        found = [metadata.row_group(group).column(number).statistics for group in groups]
        if found and all(each is not None and each.has_min_max for each in found):
            # Times in the bodies of messages may be in years that Python does not have.
            with suppress(OverflowError):
                low, high = min(each.min for each in found), max(each.max for each in found)
                bound = _above(high)
                if bound is not None:
                    least[name], most[name] = _written(low), _written(bound)
    return least, most


def _above(value: Any) -> Any:
    """Return an upper bound of few characters, or in whole milliseconds; None without one.

    Readers that use delta-rs find no row of a text without bounds.
    """
    if isinstance(value, str):
        return _text_above(value)
    if isinstance(value, int) or not value.microsecond % 1000:
        return value
    return value + timedelta(milliseconds=1)


def _text_above(text: str) -> str | None:
    if len(text) <= LONGEST_BOUND:
        return text
    beginning = text[:LONGEST_BOUND].rstrip(chr(_LAST_CHARACTER))
    if not beginning:
        return None
    following = ord(beginning[-1]) + 1
    return beginning[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def _repeated(schema: Any) -> list[str]:
    """Return the leaves whose values repeat.

    A dictionary for the others takes time and saves no space.
    """
    found = [leaf for field in schema for leaf in leaves(field.name, field.type)]
    return [leaf for leaf in found if leaf.removesuffix(".list.element") not in _DISTINCT]


def _bloom(schema: Any, group: int | None) -> dict[str, Any] | None:
    if group is None or BLOOM not in schema.names:
        return None
    return {BLOOM: {"ndv": group, "fpp": _FALSE_HITS}}


def _written(value: Any) -> Any:
    if isinstance(value, str):
        return value[:LONGEST_BOUND]
    if isinstance(value, int):
        return value
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
