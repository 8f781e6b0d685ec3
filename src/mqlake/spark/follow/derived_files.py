"""Keep the derived files of a store up to date, as a streaming query over its log.

The query's tasks read and check what is new; the driver, which owns the store, then writes queue
entries, index entries and checkpoint up to where the micro-batch ends. What is written follows from
the log alone, so a batch that runs again changes nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.jobs.engine import Engine
from mqlake.jobs.local import Progress
from mqlake.jobs.rebuild.job import rebuild
from mqlake.spark.follow.identity import in_use
from mqlake.spark.follow.options import StoreQuery
from mqlake.spark.follow.query import Query, require_classic
from mqlake.spark.session import Session
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.dispatch.derivation import Derivation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("physicalOffset", "size")
PARTS = ("consumequeue", "index")


class DispatchReport(msgspec.Struct, frozen=True, rename="camel"):
    """What one run of the dispatch has done.

    Attributes:
        is_rebuilt: derived files were missing, and all were built by a rebuild first.
        batches: micro-batches with new records.
        records: records that were dispatched in them.
        log_end: physical offset up to which all is dispatched.
    """

    store: str
    checkpoint: str
    is_rebuilt: bool
    batches: int
    records: int
    log_end: int


def dispatch(
    session: Session,
    query: StoreQuery,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> DispatchReport:
    """Bring queues and index of a store up to date, as its log grows; return when that is over.

    Raises:
        JobError: the checkpoint is in use.
        StoreError: another process owns the store, or it cannot be read.
        DiskError: the disk failed.
    """
    require_classic(session.spark)
    with in_use(query.checkpoint):
        is_rebuilt = _rebuild_if_missing(query.store, session.engine)
        with Derivation.open(LocalOwnedDirectory(query.store)) as derivation:
            batches = _Batches(derivation)
            query = msgspec.structs.replace(query, columns=COLUMNS)
            Query(session.spark, query, batches.take, stop or threading.Event(), progress).run()
            return DispatchReport(
                str(query.store),
                str(query.checkpoint),
                is_rebuilt,
                batches.count,
                batches.records,
                derivation.position,
            )


def _rebuild_if_missing(store: Path, engine: Engine) -> bool:
    """Build queues and index anew, a task each stretch of log, where one of them is not there."""
    if all((store / part).is_dir() for part in PARTS):
        return False
    rebuild(store, engine)
    return True


class _Batches:
    def __init__(self, derivation: Derivation) -> None:
        self.count = self.records = 0
        self._derivation = derivation

    def take(self, rows: DataFrame, _: int) -> None:
        frame: Any = rows
        limit = frame.selectExpr("max(physicalOffset + size)").first()[0]
        if limit is None:
            return
        records = self._derivation.advance(limit)
        self.count += bool(records)
        self.records += records
