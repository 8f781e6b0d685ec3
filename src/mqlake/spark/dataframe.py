"""The messages of a store as a Spark DataFrame, over a classic session or Spark Connect."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mqlake.errors import JobError, MqlakeError
from mqlake.query.reading.log import logger
from mqlake.spark.pandas_warning import ignore_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SegmentPart(NamedTuple):
    """The input of one task: a segment's file, up to the end of the log (physical offsets,
    bytes).
    """

    store: str
    path: str
    base: int
    end: int


def messages(
    spark: SparkSession,
    store: Path | str,
    columns: Sequence[str] | None = None,
    *,
    decompress: bool = True,
) -> DataFrame:
    """Return the messages of a store, one in each row, up to the end of the log as RocketMQ sees
    it.

    Nothing is copied: a task scans a segment when an action needs it. The columns are those of
    `mqlake.dispatch.arrow.SCHEMA`; only the chosen ones are computed. All executors must see the
    store at the same path, and not change while the DataFrame is in use.

    Args:
        decompress: whether rows are messages as consumers receive them: bodies are decompressed,
            and the messages of an inner batch are rows. Otherwise rows are records as stored.

    Raises:
        StoreError: the directory is not a store.
        MqlakeError: a column does not exist.
        JobError: a package that PySpark needs for this is missing.
    """
    schema = _for_spark(columns)
    parts = _parts(Path(store).absolute())
    rows: Any = spark.range(0, len(parts), 1, max(1, len(parts)))
    types: Any = importlib.import_module("pyspark.sql.pandas.types")
    spark_schema = types.from_arrow_schema(schema, prefer_timestamp_ntz=False)
    try:
        with ignore_pandas_warning():
            return rows.mapInArrow(_reader(parts, schema, decompress=decompress), spark_schema)
    except ImportError as error:
        raise JobError(f"a DataFrame of messages: {error}") from None


def _parts(store: Path) -> list[SegmentPart]:
    from mqlake.storage.local import LocalDirectory
    from mqlake.store.log.segments import open_log
    from mqlake.store.reader import StoreReader

    with StoreReader.open(store) as reader:
        end = reader.max_offset
    return [
        SegmentPart(str(store), segment.path, segment.base, min(segment.end, end))
        for segment in open_log(LocalDirectory(store)).segments
        if segment.base < end
    ]


def _reader(
    parts: list[SegmentPart], schema: Any, *, decompress: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            numbers: list[int] = batch.column(0).to_pylist()
            for number in numbers:
                yield from scan(parts[number], schema, decompress=decompress)

    return read


def scan(part: SegmentPart, schema: Any, *, decompress: bool) -> Iterator[Any]:
    """Yield the messages of a part as Arrow record batches (in a task)."""
    from mqlake.dispatch.scan import SegmentScan, Want
    from mqlake.jobs.bodies.plain_bodies import StoredBodies
    from mqlake.storage.local import LocalDirectory

    file = LocalDirectory(Path(part.store)).open(part.path)
    stored = StoredBodies() if decompress else None
    try:
        start, end = part.base, part.end
        for batch in SegmentScan(file, start, start, end, exact=True, want=Want.EXPORT):
            yield from _rows(batch, schema, stored)
    finally:
        file.close()
    if stored is not None:
        stored.report(lambda what: logger().warning("%s: %s", part.store, what))


def _rows(batch: Any, schema: Any, stored: Any) -> Iterator[Any]:
    from mqlake.jobs.bodies.inner_batches import columns_of, split
    from mqlake.jobs.bodies.plain_bodies import decompressed
    from mqlake.query.store.columns import with_bodies

    if stored is None:
        yield columns_of(batch, schema.names).cast(schema)
        return
    names = sorted(with_bodies(schema.names))
    for part in split(batch):
        made = columns_of(part, names)
        for plain in decompressed(made, stored) if "body" in names else (made,):
            yield plain.select(schema.names).cast(schema)


def _for_spark(columns: Sequence[str] | None) -> Any:
    """Return the columns' Arrow schema with times in microseconds, the only unit that Spark
    accepts.
    """
    arrow: Any = importlib.import_module("pyarrow")
    all_columns = _columns().SCHEMA
    fields: list[Any] = []
    for name in columns or all_columns.names:
        if name not in all_columns.names:
            raise MqlakeError(
                f"there is no column {name!r}; the columns are {', '.join(all_columns.names)}"
            )
        field = all_columns.field(name)
        is_time = arrow.types.is_timestamp(field.type)
        fields.append(field.with_type(arrow.timestamp("us", tz="UTC")) if is_time else field)
    return arrow.schema(fields)


def _columns() -> Any:
    from mqlake.dispatch import arrow

    return cast("Any", arrow)  # pyarrow has no types
