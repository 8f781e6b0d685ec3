"""Union reads of tables with bodies as stored, and with decompressed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.sys_flag import COMPRESSED
from mqlake.lake.options import Format
from mqlake.protocol.messages.body_compression import compress
from tests.lake.union.kept_lake import KeptLake
from tests.query.store.rows import batch_rows

TEXT = b"long enough to be compressed " * 10


def lake_of(path: Path, source: dict[str, str]) -> KeptLake:
    """Return a table with messages, and a log with newer ones; some bodies are compressed."""
    lake = KeptLake(path, Format.DELTA, source=source)
    body, flag = compress(TEXT, "zlib", 5)
    for _ in range(2):
        lake.store.maker.sys_flag = flag
        lake.store.maker.append(topic="A", body=body, KEYS="key")
        lake.store.maker.sys_flag = 0
        lake.grow(5)
        lake.take()
    lake.store.maker.sys_flag = flag
    lake.store.maker.append(topic="A", body=body, KEYS="key")
    lake.store.maker.sys_flag = 0
    lake.grow(5)
    return lake


@pytest.mark.parametrize("source", [{}, {"decompress": "false"}, {"decompress": "true"}])
def test_bodies_are_decompressed_whatever_the_table_has(
    tmp_path: Path, source: dict[str, str]
) -> None:
    lake = lake_of(tmp_path, {"decompress": "false", **source})
    if not source:
        lake = _noted_without_form(lake)
    assert lake.rows() == batch_rows(lake.store.path)
    assert sum(row["body"] == TEXT for row in lake.rows()) == 3
    assert [row["sysFlag"] & COMPRESSED for row in lake.rows(columns="sysFlag")] == [0] * 38


def test_bodies_as_stored(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, {"decompress": "false"})
    assert lake.rows(decompress="false") == batch_rows(lake.store.path, decompress=False)


def test_the_log_continues_a_table_of_decompressed_bodies(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, {"decompress": "true"})
    assert lake.rows(decompress="false") == batch_rows(lake.store.path)


def _noted_without_form(lake: KeptLake) -> KeptLake:
    """Remove the form from the table's notes, which earlier versions did not write."""
    (note,) = (lake.out / "_mqlake" / "followers").glob("*.json")
    note.write_text(note.read_text().replace('"decompress":"false"', ""))
    return lake
