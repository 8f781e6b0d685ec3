"""Keep the derived files of a store up to date, as a streaming query over its log.

The query's tasks read and check new records. Then the driver, which owns the store, writes queue
entries, index entries and the checkpoint up to the end of the micro-batch. They are derived from
the log alone, so repeating a batch changes nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.jobs.local import Progress
from mqlake.jobs.rebuild.job import rebuild
from mqlake.lake.followers.identity import in_use
from mqlake.lake.options import ENOUGH, StoreQuery
from mqlake.spark.follow.query import MicroBatchQuery, require_classic
from mqlake.spark.session import Session
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.derivation import Derivation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("physicalOffset", "size")
PARTS = ("consumequeue", "index")


class DispatchReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one run of the dispatch.

    Attributes:
        is_rebuilt: derived files were missing, and a rebuild created all of them first.
        batches: micro-batches with new records.
        records: records that were dispatched in them.
        log_end: physical offset up to which everything is dispatched.
    """

    store: str
    checkpoint: str
    is_rebuilt: bool
    batches: int
    records: int
    log_end: int


@reports_disk_faults
def dispatch(
    session: Session,
    query: StoreQuery,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> DispatchReport:
    """Keep queues and index of a store up to date as its log grows; return when stopped.

    Raises:
        JobError: the checkpoint is in use.
        StoreError: another process owns the store, or it cannot be read.
        DiskError: the disk failed.
    """
    require_classic(session.spark)
    with in_use(query.checkpoint):
        is_rebuilt = _rebuild_if_missing(query.store, session.engine)
        with Derivation.open(LocalOwnedDirectory(query.store)) as derivation:
            batches = _DerivedBatches(derivation)
            source = {
                "maxOffsetsPerTrigger": str(ENOUGH),
                **query.source,
                "decompress": "false",
                "systemTopics": "true",
            }
            query = msgspec.structs.replace(query, columns=COLUMNS, source=source)
            MicroBatchQuery(
                spark=session.spark,
                query=query,
                take=batches.take,
                stop=stop or threading.Event(),
                progress=progress,
            ).run()
            return DispatchReport(
                str(query.store),
                str(query.checkpoint),
                is_rebuilt,
                batches.count,
                batches.records,
                derivation.position,
            )


def _rebuild_if_missing(store: Path, engine: Engine) -> bool:
    """Rebuild queues and index, in one task per stretch of the log, if one of them is missing."""
    if all((store / part).is_dir() for part in PARTS):
        return False
    rebuild(store, engine)
    return True


class _DerivedBatches:
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
