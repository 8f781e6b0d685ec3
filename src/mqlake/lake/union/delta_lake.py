"""A version of a Delta Lake table, read through delta-rs."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.lake.files.lake_files import LakeFiles, is_url
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.delta_table import FAILURES, application, failure, noted_end
from mqlake.lake.tables.lake_options import delta_options
from mqlake.lake.union.lake import LakeFile
from mqlake.lake.union.pruning import wanted_files
from mqlake.query.reading.conditions import AnyText, Selection

try:
    from deltalake import DeltaTable
except ImportError:
    raise JobError("deltalake is not installed: pip install 'mqlake[delta]'") from None

_DELETION_VECTORS = "deletionVectors"
_PREFIXES = {"partition.": "", "min.": "least.", "max.": "most."}


class DeltaLake:
    """See `lake.Lake`."""

    def __init__(self, root: str, files: LakeFiles) -> None:
        self.root = root
        storage = delta_options(root, files.settings) if is_url(root) else None
        try:
            self._table = DeltaTable(root, storage_options=storage)
        except FAILURES as error:
            raise failure(root, error) from None

    @property
    def columns(self) -> Sequence[str]:
        return pa.schema(self._table.schema()).names

    def last_batch(self, follower: str) -> int:
        found = self._table.transaction_version(application(follower))
        return -1 if found is None else found

    def end(self, follower: str) -> CommittedEnd | None:
        return noted_end(self._table, follower)

    def files(self, selection: Selection) -> list[LakeFile]:
        found = wanted_files(self._files, selection)
        columns = [found.column(name).to_pylist() for name in ("path", "size_bytes")]
        is_by_topic = "topic" in found.column_names
        topics = found.column("topic").to_pylist() if is_by_topic else [None] * found.num_rows
        return [
            LakeFile(self._place(path), size, topic, self._deleted.get(Path(path).name))
            for path, size, topic in zip(*columns, topics, strict=True)
        ]

    def has_topic(self, topic: str) -> bool:
        return wanted_files(self._files, (AnyText("topic", (topic,)),)).num_rows > 0

    @cached_property
    def _files(self) -> Any:
        """The files with their bounds; if the table has no files, the columns may be missing."""
        table: Any = pa.table(self._table.get_add_actions(flatten=True))
        return table.rename_columns([_renamed(name) for name in table.column_names])

    @cached_property
    def _deleted(self) -> dict[str, Any]:
        """Numbers of deleted rows by the names of files, which no two files share."""
        if _DELETION_VECTORS not in (self._table.protocol().reader_features or []):
            return {}
        rows = pa.table(self._table.deletion_vectors())
        return {
            unquote(path).rpartition("/")[2]: np.flatnonzero(~np.array(kept, np.bool_))
            for path, kept in zip(
                rows.column("filepath").to_pylist(),
                rows.column("selection_vector").to_pylist(),
                strict=True,
            )
        }

    def _place(self, path: str) -> str:
        name = unquote(path).removeprefix("file://")
        return name if name.startswith("/") or is_url(name) else f"{self.root}/{name}"


def _renamed(column: str) -> str:
    """Return the name of a column of delta-rs in `pruning`."""
    for prefix, ours in _PREFIXES.items():
        if column.startswith(prefix):
            return f"{ours}{column.removeprefix(prefix)}"
    return column
