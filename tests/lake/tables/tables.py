"""Read tables as anybody would, and write them without a Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import dataset
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.table import LakeTable

Row = dict[str, Any]

COLUMNS = ("topic", "body", "queueOffset", "storeTimestamp")
DAY = 86_400_000_000
FOLLOWER = "0" * 32


def options(out: Path, format_: Format, **others: Any) -> FollowOptions:
    given = {"columns": COLUMNS, "publish_after": 1e9, **others}
    return FollowOptions(
        store=out / "no-store", format=format_, out=out, checkpoint=out / "checkpoint", **given
    )


def iceberg(path: Path) -> Table:
    uri = f"sqlite:///{path}/_mqlake/catalog.db"
    return load_catalog("default", uri=uri).load_table(f"mqlake.{path.name}")


def read(format_: Format, path: Path) -> pa.Table:
    """Return the rows of a table, read by the format's own library."""
    match format_:
        case Format.DELTA:
            return pa.table(DeltaTable(path).to_pyarrow_table())
        case Format.ICEBERG:
            return iceberg(path).scan().to_arrow()
        case Format.PARQUET:
            names = pa.schema([("topic", pa.string()), ("day", pa.date32())])
            partitions = dataset.partitioning(names, flavor="hive")
            if not any(path.glob("topic=*/*/*.parquet")):
                return pa.table({})
            found = dataset.dataset(path, format="parquet", partitioning=partitions)
            files = [fragment.physical_schema for fragment in found.get_fragments()]
            return found.replace_schema(pa.unify_schemas([*files, names])).to_table()


def data_files(format_: Format, path: Path) -> list[str]:
    """Return the files that a reader reads."""
    match format_:
        case Format.DELTA:
            return DeltaTable(path).file_uris()
        case Format.ICEBERG:
            return [task.file.file_path for task in iceberg(path).scan().plan_files()]
        case Format.PARQUET:
            return [str(file) for file in path.glob("topic=*/*/*.parquet")]


def batch(rows: Iterable[Row], columns: tuple[str, ...] = COLUMNS) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=table_schema(columns))


def row(number: int, topic: str = "A", day: int = 20_000, **others: Any) -> Row:
    return {
        "topic": topic,
        "body": str(number).encode(),
        "queueOffset": number,
        "storeTimestamp": day * DAY + number,
        **others,
    }


def add(
    table: LakeTable,
    number: int,
    rows: Iterable[Row],
    columns: tuple[str, ...] = COLUMNS,
    follower: str = FOLLOWER,
) -> None:
    """Commit rows as a micro-batch."""
    files = write_all(table.shape(follower, number), [batch(rows, columns)])
    table.commit(follower, number, files)


def numbers(format_: Format, path: Path) -> list[int]:
    """Return what distinguishes the rows, sorted."""
    found = read(format_, path)
    return sorted(found["queueOffset"].to_pylist()) if found.num_columns else []
