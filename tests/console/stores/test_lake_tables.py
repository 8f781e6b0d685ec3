from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.console.stores.lake_tables import MOST_LETTERS, lake_table_facts
from mqlake.jobs.local import LocalEngine
from mqlake.lake.files.letters import COLUMNS, from_rows
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.follow.dead_letters import DeadLetterTable
from mqlake.lake.options import Format
from mqlake.lake.tables.evolution import table_schema
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.plan import plan_batch
from mqlake.query.store.position import StorePosition
from mqlake.query.store.read import read
from tests.lake.union.kept_lake import FOLLOWER, KeptLake
from tests.query.store.rows import options_of


@pytest.mark.parametrize("format_", Format)
def test_shows_how_far_a_table_is(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take()
    lake.compact()
    lake.grow(3)
    facts = lake_table_facts(str(lake.out), (lake.store.path,))
    assert facts.problem is None
    assert facts.format.lower() == str(format_)
    assert facts.files > 0
    assert facts.length > 0
    (log,) = facts.logs
    assert log.store == str(lake.store.path)
    assert log.end == lake.end
    assert log.last_batch == 0
    assert log.lag is not None
    assert log.lag > 0
    assert facts.letters == []


def test_a_lost_store_is_told(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()
    lake.store.path.rename(tmp_path / "elsewhere")
    (log,) = lake_table_facts(str(lake.out), (lake.store.path,)).logs
    assert log.lag is None
    assert log.problem is not None


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    facts = lake_table_facts(str(tmp_path), ())
    assert "mqlake follow does not write this table" in (facts.problem or "")


def test_only_the_stores_of_the_console_are_opened(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.take()
    (log,) = lake_table_facts(str(lake.out), (tmp_path,)).logs
    assert log.log_end is None
    assert "--store" in (log.problem or "")


def add_dead_letters(lake: KeptLake) -> None:
    """Do what `follow` does: note a damaged record, and every message of the table as refused."""
    letters = DeadLetterTable(lake.options, LocalEngine(1), FOLLOWER)
    shape = letters.refused_shape(0)
    assert shape is not None
    asked, schema = options_of(lake.store.path), table_schema(COLUMNS)
    refused = [
        from_rows(batch, store=str(lake.store.path), reason="body is no <JSON>", schema=schema)
        for task in plan_batch(asked).tasks
        for batch in read(task, arrow_schema(asked.columns))
    ]
    letters.add_refused(0, write_all(shape, refused))
    _, second, *_ = sorted(lake.truth)
    with min((lake.store.path / "commitlog").iterdir()).open("r+b") as file:
        file.seek(second)
        file.write(b"\xff" * 64)
    assert letters.take_damage(0, StorePosition(0), StorePosition(lake.end)) == 1


@pytest.mark.parametrize("format_", Format)
def test_shows_what_the_table_refused_and_what_is_damaged(tmp_path: Path, format_: Format) -> None:
    lake = KeptLake(tmp_path, format_)
    lake.take()
    add_dead_letters(lake)
    facts = lake_table_facts(str(lake.out), (lake.store.path,))
    assert facts.problem is None
    refused = [each for each in facts.letters if each.kind == "refused"]
    assert sorted(each.physical_offset or 0 for each in refused) == sorted(lake.truth)
    for each in refused:
        row = lake.truth[each.physical_offset or 0]
        assert (each.topic, each.queue_id, each.queue_offset, each.length, each.reason) == (
            *(row[name] for name in ("topic", "queueId", "queueOffset", "size")),
            "body is no <JSON>",
        )
    (damage,) = [each for each in facts.letters if each.kind != "refused"]
    assert damage.kind == "damage"
    assert damage.physical_offset == sorted(lake.truth)[1]
    assert not facts.is_cut


def test_lists_the_first_dead_letters_of_many(tmp_path: Path) -> None:
    lake = KeptLake(tmp_path, Format.PARQUET)
    lake.grow(MOST_LETTERS)
    lake.take()
    add_dead_letters(lake)
    facts = lake_table_facts(str(lake.out), (lake.store.path,))
    assert len(facts.letters) == MOST_LETTERS
    assert facts.is_cut
