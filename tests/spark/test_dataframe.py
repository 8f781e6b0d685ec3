"""A store as a DataFrame has the messages that RocketMQ itself reads."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from mqlake.errors import MqlakeError, StoreError
from mqlake.spark.classic import ClassicSession
from mqlake.spark.dataframe import messages
from tests.golden import store
from tests.query.store.truth import expected_rows

pytest.importorskip("pandas", reason="PySpark asks for pandas before it takes Arrow batches")
pytestmark = [pytest.mark.spark]


def as_recorded(row: Any) -> dict[str, Any]:
    """Give a row the form of the recorded messages."""
    values = row.asDict()
    for name in ("bornTimestamp", "storeTimestamp"):
        values[name] = round(values[name].timestamp() * 1000)
    body = values.pop("body")
    return values | {"bodyLength": len(body), "bodySha1": hashlib.sha1(body).hexdigest()}


def as_column(message: dict[str, Any]) -> dict[str, Any]:
    """Give a recorded message the names and the texts of the columns."""
    properties = message["properties"] or {}
    return message | {
        "bodyCrc": message["bodyCRC"],
        "bornHost": message["bornHost"].removeprefix("/"),
        "storeHost": message["storeHost"].removeprefix("/"),
        "msgId": message["offsetMsgId"],
        "properties": properties,
        "tags": properties.get("TAGS"),
        "keys": properties.get("KEYS", "").split(),
    }


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean", "rmq5-torn"])
def test_every_message_in_every_column(session: ClassicSession, name: str) -> None:
    """A torn log ends where RocketMQ's recovery ends it."""
    golden = store(name)
    expected = golden.messages()

    rows = (
        messages(session.spark, golden.path, decompress=False).orderBy("physicalOffset").collect()
    )

    assert len(rows) == len(expected)
    for row, message in zip(map(as_recorded, rows), map(as_column, expected), strict=True):
        assert row == {name: message[name] for name in row}


def test_a_query_over_chosen_columns(session: ClassicSession) -> None:
    golden = store("rmq5-clean")
    frame = messages(session.spark, str(golden.path), ["topic", "storeTimestamp"])
    frame.createOrReplaceTempView("messages")

    query = "select topic, count(*) n, max(storeTimestamp) newest from messages group by topic"
    answer = {row.topic: (row.n, row.newest) for row in session.spark.sql(query).collect()}

    assert frame.columns == ["topic", "storeTimestamp"]
    times: dict[str, list[int]] = {}
    for message in golden.messages():
        times.setdefault(message["topic"], []).append(message["storeTimestamp"])
    assert answer.keys() == times.keys()
    for topic, (count, newest) in answer.items():
        assert count == len(times[topic])
        assert newest.astimezone(UTC) == datetime.fromtimestamp(max(times[topic]) / 1000, UTC)


def test_an_unknown_column_is_refused(session: ClassicSession) -> None:
    with pytest.raises(
        MqlakeError, match=r"^there is no column 'nonsense'; the columns are topic,"
    ):
        messages(session.spark, store("rmq5-clean").path, ["nonsense"])


def test_a_missing_store_is_refused(session: ClassicSession) -> None:
    with pytest.raises(StoreError):
        messages(session.spark, "/nonexistent/store")


def test_bodies_are_decompressed(session: ClassicSession) -> None:
    golden = store("rmq5-clean")
    rows = messages(session.spark, golden.path, ["physicalOffset", "body"]).collect()
    found = {row.physicalOffset: hashlib.sha1(row.body).hexdigest() for row in rows}
    assert found == {row["physicalOffset"]: row["bodySha1"] for row in expected_rows(golden)}
