"""What is done with a micro-batch's files, without a Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlake.jobs.local import LocalEngine
from mqlake.lake.files.letters import COLUMNS, without_record
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.follow.dead_letters import DeadLetterTable, options_of
from mqlake.lake.follow.log_positions import LogPositions
from mqlake.lake.options import Format
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.opening import open_table
from mqlake.spark.follow.micro_batch import MicroBatches
from tests.lake.tables.tables import FOLLOWER, data_files, options


def test_dead_letters_are_shown_although_no_message_is_written(tmp_path: Path) -> None:
    given, engine = options(tmp_path / "table", Format.PARQUET), LocalEngine(1)
    letters = DeadLetterTable(given, engine, FOLLOWER)
    batches = MicroBatches(
        table=open_table(given),
        engine=engine,
        follower=FOLLOWER,
        compact_every=1,
        positions=LogPositions(given.store, given.checkpoint, None),
        dead_letters=letters,
        log=None,
    )
    names = ("physicalOffset", "length", "kind", "reason", "raw", "found")
    damage: dict[str, Any] = dict(
        zip(names, (0, 100, "damage", "checksum", b"\0" * 100, 0), strict=True)
    )
    rows = without_record(table_schema(COLUMNS), [damage])
    letters.table.commit(FOLLOWER, 0, write_all(letters.table.shape(FOLLOWER, 0), [rows]))
    batches.compact()
    assert len(data_files(Format.PARQUET, options_of(given).out)) == 1
