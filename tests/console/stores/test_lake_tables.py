from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.console.stores.lake_tables import lake_table_facts
from mqlake.lake.options import Format
from tests.lake.union.kept_lake import KeptLake


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
