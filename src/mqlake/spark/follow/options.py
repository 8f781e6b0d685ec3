"""What `mqlake follow` is asked to do."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from mqlake.errors import FormatError
from mqlake.spark.follow.body_columns import BodyFormat
from mqlake.spark.follow.lake_files import S3, LakeFiles
from mqlake.spark.source.columns import COLUMNS, check_columns

NEEDED = ("topic", "storeTimestamp")
"""Columns that tell a row's partition."""

PARTITIONS = ("topic", "day")
"""What a table may be partitioned by; the day is the UTC day of the store time."""

STATE = "_mqlake"
"""Directory of a table in which mqlake keeps what is not data. Spark, Delta Lake and Iceberg pass
over names that begin with an underscore, as do pyarrow and Hive."""


class Format(StrEnum):
    """What a store is followed into."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    PARQUET = "parquet"


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query over a store.

    Attributes:
        checkpoint: directory in which Spark keeps how far the query is.
        source: options of the source `rocketmq`, without `path` and `columns`.
        columns: columns of the source, in its order.
        once: stop when all that is there now is taken.
        processing_time: least time between two looks at the log, as Spark writes it.
    """

    store: Path
    checkpoint: Path
    source: dict[str, str] = {}
    columns: tuple[str, ...] = COLUMNS
    once: bool = False
    processing_time: str = "1 second"

    def members(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return msgspec.structs.asdict(self)


BATCH_LIMIT = 500_000
"""Messages of a micro-batch, if the source's options do not say it."""


class FollowOptions(StoreQuery, frozen=True, kw_only=True):
    """A query over a store, and the table that its messages go to.

    Attributes:
        out: directory of the table; of a table on an object store, what is kept of it here.
        url: where a table on an object store is, with the scheme `s3`.
        storage: settings of the object store; they may be secrets.
        target_lag: seconds that a message waits at most for others to be committed with; less if
            a whole micro-batch waits.
        target_file_size: bytes that a data file should have at least; smaller ones are merged.
        compact_every: micro-batches between two looks for small files, 0 for none.
        keep_versions: seconds for which old versions of the table can be read; their files are
            removed afterwards. None keeps them for ever.
        publish_after: seconds that messages of a Parquet table wait for others (`parquet_table`).
        catalog: URI of an Iceberg catalog; one of the table's own without it.
        catalog_name: name of the catalog, by which SQL catalogs find their tables.
        table: namespace and name in that catalog.
        partition_by: what the table is partitioned by: parts of `PARTITIONS`, in that order.
        upsert_by: column whose values are keys: a message replaces older ones of its topic and key,
            and one with an empty body deletes them.
        body: what bodies are, if their fields are columns of the table.
        body_fields: Arrow schema of these columns, once a Spark has told it.
        is_per_topic: each topic has a table of its own, in a directory below `out`.
        catalog_options: what else PyIceberg's catalog takes, such as `type` or `token`.
    """

    format: Format
    out: Path
    url: str | None = None
    storage: dict[str, str] = {}
    target_lag: float = 60.0
    target_file_size: int = 128 << 20
    compact_every: int = 10
    keep_versions: float | None = 7 * 86_400.0
    publish_after: float = 60.0
    catalog: str | None = None
    catalog_name: str = "default"
    table: str | None = None
    catalog_options: dict[str, str] = {}
    partition_by: tuple[str, ...] = PARTITIONS
    upsert_by: str | None = None
    body: BodyFormat | None = None
    body_fields: Any = None
    is_per_topic: bool = False

    def __repr__(self) -> str:
        # Settings of stores and catalogs may be secrets.
        return f"FollowOptions(format={self.format!r}, place={self.place!r})"

    @property
    def place(self) -> str:
        """The directory or URL of the table."""
        return self.url or str(self.out)

    @property
    def files(self) -> LakeFiles:
        """What reads and writes the files of the table."""
        return LakeFiles(self.storage)

    @property
    def fails_on_loss(self) -> bool:
        """Whether damage ends `follow`; else it goes to the table of dead letters."""
        return self.source.get("failOnDataLoss", "false").lower() == "true"


def chosen_columns(names: str | None) -> tuple[str, ...]:
    """Return the columns that a list with commas names, and those that are needed; None for all.

    Raises:
        FormatError: there is no such column.
    """
    if names is None:
        return COLUMNS
    chosen = check_columns([name.strip() for name in names.split(",") if name.strip()])
    return tuple(name for name in COLUMNS if name in chosen or name in NEEDED)


def partition_parts(names: str) -> tuple[str, ...]:
    """Return what `--partition-by` says: parts with commas between them, or none.

    Raises:
        FormatError: something else.
    """
    parts = [] if names == "none" else [name.strip() for name in names.split(",")]
    if len(set(parts)) < len(parts) or not set(parts) <= set(PARTITIONS):
        raise FormatError(
            f"--partition-by {names[:50]}: topic, day, both with a comma between them, or none"
        )
    return tuple(part for part in PARTITIONS if part in parts)


def target_of(name: str, checkpoint: Path | None, format_: str) -> tuple[Path, str | None]:
    """Return the directory that `--out` names, and the URL if the table is on an object store.

    The directory of such a table is below the checkpoint: only it has what is not data.

    Raises:
        FormatError: the place or the format cannot be used.
    """
    if "://" not in name or name.startswith("file://"):
        return Path(name.removeprefix("file://")).absolute(), None
    scheme, _, rest = name.partition("://")
    key = rest.rstrip("/")
    if scheme not in ("s3", "s3a", "s3n") or "/" not in key or set(key) & set("?#@%"):
        raise FormatError(f"--out {_shown(name)}: give a directory, or s3://BUCKET/PREFIX")
    if format_ == Format.PARQUET:
        raise FormatError(
            f"--out {name}: a Parquet table has to be in a directory: use --to delta or iceberg"
        )
    if checkpoint is None:
        raise FormatError(f"--out {name}: give a local or mounted directory as --checkpoint, too")
    return checkpoint.absolute() / "table" / key.rpartition("/")[2], f"{S3}{key}"


def _shown(url: str) -> str:
    """Return a URL without what may be a secret."""
    return url.partition("?")[0].rpartition("@")[2][:100]
