"""The newest message of each key: the last one, also within an inner batch, which is one record."""

# pyright: basic
# Reason: PySpark carries few types.

from __future__ import annotations

import pytest

from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.newest_rows import newest, to_write

pytestmark = [pytest.mark.spark]


def test_the_last_message_of_an_inner_batch_is_the_newest(session: ClassicSession) -> None:
    columns = "topic string, keys string, body string, physicalOffset long, queueOffset long"
    rows = [
        ("T", f"k{key}", f"{record}-{at}", record, at)
        for record in (0, 100)
        for at in range(record, record + 8)
        for key in range(3)
    ]
    rows += [("T", "gone", "there", 200, 200), ("T", "gone", "", 200, 201)]
    frame = session.spark.createDataFrame(rows, columns).repartition(7)
    found = to_write(newest(frame, "keys")).collect()
    assert {row["keys"]: row["body"] for row in found} == {f"k{key}": "100-107" for key in range(3)}
