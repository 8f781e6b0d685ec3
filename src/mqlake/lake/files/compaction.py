"""Merge small files into larger ones."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import basename
from typing import Any

from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.lake.files.data_file import ROW_GROUP, DataFile, FileWriter
from mqlake.lake.files.field_ids import ids_of
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.storage.clock import SystemClock

MOST_FILES = 500
"""Maximum number of files in one merge."""

LARGEST = 2.5
"""Maximum size of a file, as a multiple of the target size."""


@dataclass(frozen=True)
class Merge:
    """Files of one partition to be merged into as few files as possible (a task's job).

    Attributes:
        inputs: in the order of their rows in the result.
        directory: where to write the new files; "" for beside the first of the old ones.
        files: reads and writes them.
        name_mapping: of an Iceberg table: the field ids of files that contain none.
    """

    inputs: tuple[DataFile, ...]
    directory: str = ""
    files: LakeFiles = LakeFiles()  # noqa: RUF009 (frozen)
    name_mapping: str = ""


@dataclass(frozen=True)
class Merged:
    """Old files, and the new ones with the same rows."""

    inputs: tuple[DataFile, ...]
    outputs: tuple[DataFile, ...]


def small_files(
    files: Iterable[DataFile], target: int, today: str, *, is_last: bool = False
) -> Iterator[tuple[DataFile, ...]]:
    """Yield files that should be merged, by partition.

    Groups of at least the target size become files that stay. In other groups, the largest file
    is at most twice as large as all others together, so each rewrite of a byte makes its file at
    least half as large again. The remaining files stay small until more are added.

    The remaining files of a past day are merged with the smallest file that is large enough,
    unless the result would be too large.

    Args:
        today: as in `DataFile.day`; earlier days are past. "" if the table has no partitions by
            day.
        is_last: no more files may be added for long, so all days count as past.
    """
    partitions: dict[tuple[str, str], list[DataFile]] = {}
    for file in files:
        partitions.setdefault((file.topic, file.day), []).append(file)
    for (_, day), found in partitions.items():
        is_over = is_last or (day != "" and day < today)
        small = sorted((one for one in found if one.size < target), key=lambda file: file.size)
        for group in _groups(small, target):
            size = sum(file.size for file in group)
            if size < target and is_over:
                large = [one for one in found if target <= one.size <= LARGEST * target - size]
                group += sorted(large, key=lambda file: file.size)[:1]
            elif size < target:
                _drop_too_large(group)
            if len(group) > 1:
                yield tuple(sorted(group, key=lambda file: basename(file.path)))


def utc_day() -> str:
    """Return today in the form of `DataFile.day`."""
    return datetime.fromtimestamp(SystemClock().milliseconds() / 1000, UTC).date().isoformat()


def _drop_too_large(group: list[DataFile]) -> None:
    while len(group) > 1 and group[-1].size > 2 * sum(file.size for file in group[:-1]):
        group.pop()


def _groups(files: list[DataFile], target: int) -> Iterator[list[DataFile]]:
    """Yield files in groups of the target size or slightly more, then the remaining ones."""
    group: list[DataFile] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.size
        if size >= target or len(group) == MOST_FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


@reports_disk_faults
def merge(job: Merge) -> Merged:
    """Write the rows of files to new ones, one for each set of columns (a task).

    Files with different columns are not mixed: the table decides the value of a missing column.
    A single file stays as it is.
    """
    if len(job.inputs) == 1:
        return Merged(job.inputs, job.inputs)
    by_columns: dict[Any, tuple[Any, list[DataFile]]] = {}
    for file in job.inputs:
        schema = _schema(job, file)
        _, files = by_columns.setdefault((schema, ids_of(schema)), (schema, []))
        files.append(file)
    outputs = [_merged(job, schema, files) for schema, files in by_columns.values()]
    return Merged(job.inputs, tuple(outputs))


def _schema(job: Merge, file: DataFile) -> Any:
    """Return the columns of a file, with their field ids if the table has any."""
    schema = job.files.metadata(file.path).schema.to_arrow_schema().remove_metadata()
    if not job.name_mapping or None not in ids_of(schema):
        return schema
    from mqlake.lake.files.iceberg_columns import upgraded

    return upgraded(schema, job.name_mapping) or schema


def _merged(job: Merge, schema: Any, files: list[DataFile]) -> DataFile:
    parent, _, name = files[0].path.rpartition("/")
    stem, directory = name.rpartition("-")[0], job.directory or parent
    writer = FileWriter(job.files, directory, stem, schema, _rows_of_group(job.files, files))
    try:
        gathered: list[Any] = []
        size = 0
        for batch in file_batches(job.files, files):
            gathered.append(batch)
            size += batch.nbytes
            if size >= ROW_GROUP:
                writer.write(gathered)
                gathered, size = [], 0
        if gathered:
            writer.write(gathered)
        return writer.finish(files[0].topic, files[0].day)
    except BaseException:
        writer.discard()
        raise


def _rows_of_group(lake: LakeFiles, files: list[DataFile]) -> int:
    """Return approximately how many rows a row group of merged files has."""
    rows = sum(file.rows for file in files)
    size = 0
    for file in files:
        metadata = lake.metadata(file.path)
        groups = range(metadata.num_row_groups)
        size += sum(metadata.row_group(group).total_byte_size for group in groups)
    return max(1, min(rows, rows * ROW_GROUP // (size + 1)))


def file_batches(lake: LakeFiles, files: list[DataFile]) -> Iterator[Any]:
    """Yield the rows of files in their order, in batches of limited size."""
    for file in files:
        with lake.parquet(file.path) as opened:
            rows = max(1, opened.metadata.num_rows)
            groups = range(opened.metadata.num_row_groups)
            size = sum(opened.metadata.row_group(group).total_byte_size for group in groups)
            yield from opened.iter_batches(max(1, min(rows, rows * (ROW_GROUP // 4) // (size + 1))))
