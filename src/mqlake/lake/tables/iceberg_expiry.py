"""Expire old snapshots of an Iceberg table, and remove files that no snapshot needs.

PyIceberg expires snapshots, but leaves their files. A file is removed if no remaining snapshot
names it, its name is one that `follow` or PyIceberg gives, and it is older than the time for which
snapshots are kept. So a file that is about to be committed stays.
"""

# pyright: basic
# Reason: pyiceberg carries few types.

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from posixpath import basename
from typing import TYPE_CHECKING

from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.tables.table import PREFIX

if TYPE_CHECKING:
    from pyiceberg.table import Table

SCHEME = "file://"


def expire(table: Table, files: LakeFiles, root: str, older_than: int) -> int:
    """Expire snapshots, and remove files that no snapshot needs; return how many were removed.

    Args:
        root: directory or URL of the table.
        older_than: ms since 1970. The current snapshot stays, whatever its age.
    """
    table.refresh()
    moment = datetime.fromtimestamp(older_than / 1000, UTC)
    if any(one.timestamp_ms < older_than for one in table.metadata.snapshots[:-1]):
        table.maintenance.expire_snapshots().older_than(moment).commit()
        table.refresh()
    kept = set(_named(table))
    removed = 0
    for path, written in _candidates(files, root):
        if path not in kept and written * 1000 < older_than:
            files.remove(path)
            removed += 1
    return removed


def _named(table: Table) -> Iterator[str]:
    """Yield all files that snapshots name."""
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        yield _place(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield _place(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield _place(entry.data_file.file_path)


def _candidates(files: LakeFiles, root: str) -> Iterator[tuple[str, float]]:
    for path, written in files.walk(f"{root}/data"):
        if basename(path).startswith(PREFIX) and path.endswith(".parquet"):
            yield path, written
    for path, written in files.walk(f"{root}/metadata"):
        if path.endswith(".avro"):
            yield path, written


def _place(uri: str) -> str:
    return uri.removeprefix(SCHEME)
