"""Forget old snapshots of an Iceberg table, and remove the files that none needs any more.

PyIceberg expires snapshots, but leaves their files. A file is removed if no snapshot that is left
names it, its name is of those that `follow` and PyIceberg give, and it is older than the time for
which snapshots are kept: so a file that somebody is about to commit stays.
"""

# pyright: basic
# Reason: pyiceberg carries few types.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.spark.follow.table import PREFIX

if TYPE_CHECKING:
    from pyiceberg.table import Table

SCHEME = "file://"


def expire(table: Table, root: Path, older_than: int) -> int:
    """Expire snapshots, and remove files that none needs; return how many were removed.

    Args:
        root: directory of the table.
        older_than: ms since 1970. The current snapshot stays, whatever its age.
    """
    table.refresh()
    moment = datetime.fromtimestamp(older_than / 1000, UTC)
    if any(one.timestamp_ms < older_than for one in table.metadata.snapshots[:-1]):
        table.maintenance.expire_snapshots().older_than(moment).commit()
        table.refresh()
    kept = set(_named(table))
    removed = 0
    for path in _candidates(root):
        with suppress(FileNotFoundError):
            if str(path) not in kept and path.stat().st_mtime * 1000 < older_than:
                path.unlink()
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


def _candidates(root: Path) -> Iterator[Path]:
    yield from (root / "data").rglob(f"{PREFIX}*.parquet")
    yield from (root / "metadata").glob("*.avro")


def _place(uri: str) -> str:
    return uri.removeprefix(SCHEME)
