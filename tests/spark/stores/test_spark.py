"""Several stores, directories and archives on S3, inside of a real Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqlake.jobs.archive.job import archive
from mqlake.storage.object_target import open_target
from tests.golden import store
from tests.peer.python_build import PythonMissingError
from tests.peer.s3_server import BUCKET, S3Server
from tests.query.store.growing import GrowingStore
from tests.query.store.truth import expected_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]


def counts(frame: DataFrame) -> dict[str, int]:
    return {
        row["brokerName"]: row["count"] for row in frame.groupBy("brokerName").count().collect()
    }


def test_load_takes_a_list_and_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    for seed, name in enumerate(("broker-a", "broker-b"), start=1):
        GrowingStore(tmp_path / name / "store", seed).grow(30 + seed)
    expected = {"broker-a": 31, "broker-b": 32}
    reader = spark.read.format("rocketmq")
    assert counts(reader.load([f"{tmp_path}/{name}/store" for name in expected])) == expected
    assert counts(reader.load(f"{tmp_path}/*/store")) == expected


def test_a_stream_finds_a_new_store(spark: SparkSession, tmp_path: Path) -> None:
    GrowingStore(tmp_path / "stores" / "broker-a", 1).grow(20)
    for expected in ({"broker-a": 20}, {"broker-a": 20, "broker-b": 25}):
        stream = (
            spark.readStream.format("rocketmq")
            .option("startingOffsets", "earliest")
            .option("columns", "brokerName,keys")
            .load(f"{tmp_path}/stores/*")
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", f"{tmp_path}/out")
            .option("checkpointLocation", f"{tmp_path}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert counts(spark.read.parquet(f"{tmp_path}/out")) == expected
        GrowingStore(tmp_path / "stores" / "broker-b", 2).grow(25)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    try:
        started = S3Server(tmp_path / "s3")
    except PythonMissingError as reason:
        pytest.skip(f"without a server of S3: {reason}")
    yield started
    started.close()


@pytest.mark.peer
def test_archives_on_s3(spark: SparkSession, server: S3Server) -> None:
    ends = {
        name: archive(
            store(name).path, open_target(f"s3a://{BUCKET}/{name}", server.settings)
        ).max_offset
        for name in ("rmq49-clean", "rmq5-clean")
    }
    frame = spark.read.format("rocketmq").options(**server.settings).load(f"s3a://{BUCKET}/*")
    assert counts(frame) == {
        name: sum(row["physicalOffset"] < end for row in expected_rows(store(name)))
        for name, end in ends.items()
    }
