"""Tables that keep the newest message of each key."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from deltalake import write_deltalake

from mqlake.errors import FormatError, JobError
from mqlake.jobs.local import LocalEngine
from mqlake.lake.follow.accounting import check
from mqlake.lake.options import FollowOptions, Format, chosen_columns
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.body_columns import parse_format
from mqlake.spark.follow.job import follow
from mqlake.spark.follow.replaying import replay
from mqlake.store import BlockingMessageStore, Message
from tests.lake.tables.tables import read
from tests.lake.union.kept_lake import union_rows
from tests.spark.follow.drivers import Kind
from tests.spark.follow.killing import Outcome
from tests.spark.follow.test_follow import options
from tests.spark.follow.truths import Keyed

pytestmark = [pytest.mark.spark]

FORMATS = [pytest.param(Format.DELTA, marks=pytest.mark.nightly), Format.ICEBERG]
"""Delta Lake's keys are in the next tests, and under kills in `test_killed`."""


def compare(keyed: Keyed, format_: Format, out: Path) -> None:
    outcome = Outcome(Kind(format_, "keys"))
    keyed.compare(read(format_, out).to_pylist(), outcome, is_last=True)
    assert outcome.violations == 0, outcome
    assert keyed.model


def by_key(path: Path, format_: Format, out: Path, **others: Any) -> FollowOptions:
    source = {"maxOffsetsPerTrigger": "40"}
    return options(path, format_, out, upsert_by="keys", source=source, compact_every=2, **others)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_newest_message_of_each_key(
    session: ClassicSession, tmp_path: Path, format_: Format
) -> None:
    keyed, out = Keyed(tmp_path / "store", 1), tmp_path / "table"
    given = by_key(keyed.path, format_, out)
    for _ in range(2):
        keyed.put(60)
        follow(session, given)
        compare(keyed, format_, out)
    follow(session, given)
    compare(keyed, format_, out)
    assert not list((out / "_mqlake" / "keys").iterdir())


def test_tables_by_topic(session: ClassicSession, tmp_path: Path) -> None:
    keyed, out = Keyed(tmp_path / "store", 2), tmp_path / "lake"
    given = by_key(keyed.path, Format.DELTA, out, is_per_topic=True)
    for _ in range(2):
        keyed.put(60)
        follow(session, given)
    both = [row for topic in "AB" for row in read(Format.DELTA, out / topic).to_pylist()]
    found = {(row["topic"], " ".join(row["keys"])): row["body"] for row in both if row["keys"]}
    assert found == keyed.model


def test_keys_in_bodies(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    body, few = parse_format("json:id int, n bigint", {}), chosen_columns("keys")
    given = options(path, Format.DELTA, out, upsert_by="id", body=body, columns=few)
    for round_ in range(2):
        with BlockingMessageStore.open(path) as store:
            for number in range(6):
                text = f'{{"id": {number % 3}, "n": {round_ * 10 + number}}}'
                store.put(Message("A", text.encode()))
        follow(session, given)
    rows = read(Format.DELTA, out).to_pylist()
    found = {row["id"]: row["n"] for row in rows}
    assert len(rows) == len(found)
    assert found == {0: 13, 1: 14, 2: 15}


def test_what_does_not_go_with_keys(session: ClassicSession, tmp_path: Path) -> None:
    keyed, out = Keyed(tmp_path / "store", 4), tmp_path / "table"
    keyed.put(10)
    given = by_key(keyed.path, Format.DELTA, out)
    for change in ({"format": Format.PARQUET}, {"partition_by": ("day",)}):
        wrong = msgspec.structs.replace(given, out=tmp_path / "w", **change)
        with pytest.raises(JobError, match="partitioned by topic"):
            follow(session, wrong)
    for column, said in (("id", "no such column"), ("properties", "a key is"), ("topic", "a key")):
        with pytest.raises(JobError, match=f"--upsert-by {column}: .*{said}"):
            follow(session, msgspec.structs.replace(given, upsert_by=column))
    assert not out.exists()

    follow(session, given)
    with pytest.raises(JobError, match="this checkpoint is that of"):
        follow(session, msgspec.structs.replace(given, upsert_by=None))
    with pytest.raises(JobError, match="newest messages of keys, not all of them"):
        check(given, LocalEngine())
    with pytest.raises(JobError, match="are not replayed"):
        replay(given)
    with pytest.raises(FormatError, match="newest messages of keys"):
        union_rows({"table": str(out)})
    other = Keyed(tmp_path / "other", 5)
    other.put(1)
    for column in ("keys", None):
        second = msgspec.structs.replace(given, store=other.path, upsert_by=column)
        with pytest.raises(JobError, match="follows one store"):
            follow(session, msgspec.structs.replace(second, checkpoint=tmp_path / "second"))
    keyed.put(10)
    rows = read(Format.DELTA, out)
    write_deltalake(out, rows.slice(0, 1), mode="append")
    with pytest.raises(JobError, match="files that other programs wrote"):
        follow(session, given)
