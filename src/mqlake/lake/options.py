"""The options of `mqlake follow`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from mqlake.errors import FormatError
from mqlake.lake.body_format import BodyFormat
from mqlake.lake.files.lake_files import ALIASES, SCHEMES, LakeFiles
from mqlake.query.store.columns import COLUMNS, check_columns

NEEDED = ("topic", "storeTimestamp")
"""Columns that determine a row's partition."""

PARTITIONS = ("topic", "day")
"""The possible partitions of a table; the day is the UTC day of the store time."""

STATE = "_mqlake"
"""Directory of a table in which mqlake stores everything that is not data. Spark, Delta Lake,
Iceberg, pyarrow and Hive ignore names that begin with an underscore."""


class Format(StrEnum):
    """The format of the target."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    PARQUET = "parquet"


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query over a store.

    Attributes:
        checkpoint: directory in which Spark stores the query's progress.
        source: options of the source `rocketmq`, without `path` and `columns`.
        columns: columns of the source, in its order.
        once: stop when all current messages are processed.
        processing_time: minimum time between two checks of the log, in Spark's notation.
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


ENOUGH = 500_000
"""The number of messages for which no micro-batch waits longer, unless the options set it."""

BATCH_BYTES = 4 << 30
"""Approximate bytes of the log in a micro-batch, unless the source's options limit its messages.
Tasks write them as they read them, so a backlog becomes large files that need no merging."""


class FollowOptions(StoreQuery, frozen=True, kw_only=True):
    """A query over a store, and the table that its messages go to.

    Attributes:
        out: directory of the table; of a table on an object store, what is kept of it here.
        url: where a table on an object store is, with a scheme of `lake_files`.
        storage: settings of the object store; they may be secrets.
        target_lag: maximum seconds that a message waits for others to be committed with; less if
            a whole micro-batch waits.
        target_file_size: minimum bytes of a data file; smaller ones are merged.
        compact_every: micro-batches between two checks for small files, 0 for none.
        keep_versions: seconds for which old versions of the table can be read; their files are
            removed afterwards. None keeps them forever.
        publish_after: seconds that messages of a Parquet table wait for others (`parquet_table`).
        catalog: URI of an Iceberg catalog; without it, the table has its own.
        catalog_name: name of the catalog, by which SQL catalogs find their tables.
        table: namespace and name in that catalog.
        partition_by: the table's partitions: parts of `PARTITIONS`, in that order.
        upsert_by: column whose values are keys: a message replaces older ones of its topic and key,
            and one with an empty body deletes them.
        body: the format of bodies, if their fields are columns of the table.
        body_fields: Arrow schema of these columns, once a Spark session has reported it.
        is_per_topic: whether each topic has its own table, in a directory below `out`.
        catalog_options: further options of PyIceberg's catalog, such as `type` or `token`.
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
        # The settings of stores and catalogs may be secrets.
        return f"FollowOptions(format={self.format!r}, place={self.place!r})"

    @property
    def place(self) -> str:
        """The directory or URL of the table."""
        return self.url or str(self.out)

    @property
    def files(self) -> LakeFiles:
        """Reads and writes the files of the table."""
        return LakeFiles(self.storage)

    @property
    def fails_on_loss(self) -> bool:
        """Whether damage ends `follow`. Otherwise it goes to the table of dead letters."""
        return self.source.get("failOnDataLoss", "false").lower() == "true"


def chosen_columns(names: str | None) -> tuple[str, ...]:
    """Return the columns in a comma-separated list, and those that are needed; None for all.

    Raises:
        FormatError: there is no such column.
    """
    if names is None:
        return COLUMNS
    chosen = check_columns([name.strip() for name in names.split(",") if name.strip()])
    return tuple(name for name in COLUMNS if name in chosen or name in NEEDED)


def partition_parts(names: str) -> tuple[str, ...]:
    """Return the value of `--partition-by`: comma-separated parts, or none.

    Raises:
        FormatError: the value is invalid.
    """
    parts = [] if names == "none" else [name.strip() for name in names.split(",")]
    if len(set(parts)) < len(parts) or not set(parts) <= set(PARTITIONS):
        raise FormatError(f"--partition-by {names[:50]}: use topic, day, topic,day or none")
    return tuple(part for part in PARTITIONS if part in parts)


def target_of(name: str, checkpoint: Path | None, format_: str) -> tuple[Path, str | None]:
    """Return the directory for `--out`, and the URL if the table is on an object store.

    For a table on an object store, the directory is below the checkpoint, and has no data.

    Raises:
        FormatError: the place or the format cannot be used.
    """
    if "://" not in name or name.startswith("file://"):
        directory = Path(name.removeprefix("file://")).absolute()
        if format_ != "store":
            _check_outside(directory)
        return directory, None
    given, _, rest = name.partition("://")
    scheme, key = ALIASES.get(given, given), rest.rstrip("/")
    container, _, host = key.rpartition("@") if scheme == "abfss" else ("-", "", key)
    is_whole = container and "/" in host and not set(f"{container}{host}") & set("?#@%:")
    if scheme not in SCHEMES or not is_whole:
        raise FormatError(
            f"--out {_shown(name)}: give a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
        )
    if format_ == Format.PARQUET:
        raise FormatError(
            f"--out {name}: a Parquet table has to be in a directory: use --to delta or iceberg"
        )
    if checkpoint is None:
        raise FormatError(f"--out {name}: give a local or mounted directory as --checkpoint, too")
    return checkpoint.absolute() / "table" / key.rpartition("/")[2], f"{scheme}://{key}"


def _check_outside(directory: Path) -> None:
    for above in (directory, *directory.parents):
        if (above / "commitlog").is_dir():
            raise FormatError(
                f"--out {directory}: {above} is a store of RocketMQ: give a directory outside of it"
            )


def _shown(url: str) -> str:
    """Return a URL without the parts that may be secret."""
    return url.partition("?")[0].rpartition("@")[2][:100]
