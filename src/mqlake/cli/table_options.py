"""Options of `mqlake follow` that describe the table, its files and its catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

# Where the table is

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="TABLE",
        help="Directory of the table, or its s3://, gs:// or abfss:// URL.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Spark's checkpoint directory, required if --out is a URL; default:"
        " _mqlake/checkpoint in the table.",
    ),
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="Setting of the object store, such as fs.s3a.endpoint=URL; may be repeated.",
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="URI",
        help="Catalog (iceberg); default: an SQLite file in the table.",
    ),
]
CatalogName = Annotated[
    str, typer.Option("--catalog-name", metavar="NAME", help="Name of the catalog (iceberg).")
]
CatalogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-option",
        metavar="NAME=VALUE",
        help="Option of PyIceberg's catalog, such as type=glue; may be repeated.",
    ),
]
Table = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAMESPACE.NAME",
        help="Name of the table in the catalog (iceberg); default: the directory's name in the"
        " namespace mqlake.",
    ),
]

# What it contains

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to write, separated by commas; topic and storeTimestamp are always included.",
    ),
]
Decode = Annotated[
    str | None,
    typer.Option(
        "--decode",
        metavar="FORMAT[:SCHEMA]",
        help="Add the bodies' fields as columns: json, avro, protobuf or cloudevents.",
    ),
]
DecodeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--decode-option",
        metavar="NAME=VALUE",
        help="Option of --decode: message, registry, subject, writer_schema or framing; may be"
        " repeated.",
    ),
]
UpsertBy = Annotated[
    str | None,
    typer.Option(
        "--upsert-by",
        metavar="COLUMN",
        help="Keep only the newest message for each topic and value of this column; a message with"
        " an empty body deletes the row.",
    ),
]
PartitionBy = Annotated[
    str,
    typer.Option(
        "--partition-by",
        metavar="PARTS",
        help="Partitions of a new table (delta, iceberg): 'topic', 'day', 'topic,day' or 'none'.",
    ),
]
TablePerTopic = Annotated[
    bool,
    typer.Option(
        "--table-per-topic",
        help="Write a table for each topic, in a directory below --out (delta, iceberg).",
    ),
]

# How its files are kept

TargetFileSize = Annotated[
    int,
    typer.Option(
        "--target-file-size",
        metavar="BYTES",
        min=1,
        help="Merge small files into files of at least this size.",
    ),
]
CompactEvery = Annotated[
    int,
    typer.Option(
        "--compact-every",
        metavar="BATCHES",
        min=0,
        help="Merge small files after this many micro-batches (delta, iceberg); 0: never.",
    ),
]
KeepVersions = Annotated[
    float,
    typer.Option(
        "--keep-versions",
        metavar="HOURS",
        min=0,
        help="How long old versions stay readable (delta, iceberg).",
    ),
]
Expire = Annotated[
    bool,
    typer.Option(
        "--expire/--no-expire",
        help="Once an hour, remove versions that are older than --keep-versions, and their files.",
    ),
]
PublishAfter = Annotated[
    float,
    typer.Option(
        "--publish-after",
        metavar="SECONDS",
        min=0,
        help="Maximum time that messages wait to be merged into a larger file before readers see"
        " them (parquet).",
    ),
]

# Together


class TablePlace(NamedTuple):
    """Where the table is, and the checkpoint of the query that writes it."""

    out: Out = None
    checkpoint: Checkpoint = None


class TableOptions(NamedTuple):
    """How the table's files are kept, its catalog, and the rows that it contains."""

    target_file_size: TargetFileSize = 128 << 20
    compact_every: CompactEvery = 10
    keep_versions: KeepVersions = 168.0
    expire: Expire = True
    publish_after: PublishAfter = 60.0
    storage_option: StorageOption = None
    catalog: Catalog = None
    catalog_name: CatalogName = "default"
    catalog_option: CatalogOption = None
    table: Table = None
    decode: Decode = None
    decode_option: DecodeOption = None
    upsert_by: UpsertBy = None
    partition_by: PartitionBy = "topic,day"
    table_per_topic: TablePerTopic = False
