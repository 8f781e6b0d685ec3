"""Spark reads odd messages as they were sent."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from mqlake.store.reader import StoreReader
from tests.odd.sent import COUNT
from tests.odd.world import World, drawn, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


def test_rows_of_odd_messages(spark: SparkSession, tmp_path: Path) -> None:
    dice = Random("spark")
    world = World(tmp_path)
    put(world, drawn(dice, COUNT), dice)
    world.store.close()

    rows = spark.read.format("rocketmq").load(str(tmp_path)).collect()

    found = {(row.topic, row.queueId): row for row in rows}
    assert len(found) == len(rows) == len(world.accepted)
    with StoreReader.open(tmp_path) as reader:
        for number, sent in world.accepted.items():
            (record,) = reader.get(sent.message.topic, number, 0, 10).records
            row = found[sent.message.topic, number]
            assert bytes(row.body) == sent.message.body
            assert row.properties == record.properties
            assert (row.tags, row["keys"]) == (record.tags, list(record.keys))
