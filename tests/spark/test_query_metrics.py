"""What streaming queries tell monitoring systems."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqlake.client import ClientMetrics
from mqlake.metrics.metric import MetricFamily
from mqlake.spark import QueryMetrics, query_metrics
from tests.query.store.growing import GrowingStore
from tests.until import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = {
    each.prometheus_name for each in vars(query_metrics).values() if isinstance(each, MetricFamily)
}
LATEST = '{"Orders": {"broker-a": {"0": 15, "1": 30}}, "#marks": {"Orders": {"0": [900, 5]}}}'
DONE = '{"Orders": {"broker-a": {"0": 10}}, "#marks": {"Orders": {"0": [7, 5]}}}'


def values(text: bytes) -> dict[tuple[str, str], float]:
    """Return the values by name and query."""
    families = text_string_to_metric_families(text.decode())
    return {
        (each.name, each.labels["query"]): each.value
        for family in families
        for each in family.samples
    }


@pytest.mark.spark
def test_rows_and_batches_of_a_query_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    store = GrowingStore(tmp_path / "store")
    store.grow(1000)
    with QueryMetrics(spark) as queries, ClientMetrics(queries).serve_in_thread(0) as page:
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "400"}
        source = spark.readStream.format("rocketmq").options(**options).load(str(store.path))
        query = (
            source.writeStream.format("noop")
            .queryName("orders")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

        def found() -> dict[tuple[str, str], float]:
            url = f"http://127.0.0.1:{page.port}/metrics"
            return values(urlopen(url, timeout=200).read())

        # Spark tells its listeners later.
        wait_until(lambda: found().get(("mqlake_spark_query_runs", "orders")) == 0, why=found)
        told = found()
    rows = sum(progress.numInputRows for progress in query.recentProgress)
    assert told["mqlake_spark_read_rows_total", "orders"] == rows > 0
    assert told["mqlake_spark_batches_total", "orders"] == len(query.recentProgress) >= 2
    assert told["mqlake_spark_batch_time_seconds_sum", "orders"] > 0
    assert told["mqlake_spark_lag", "orders"] == 0
    assert told["mqlake_spark_query_failures_total", "orders"] == 0


def progress(**durations: int) -> Any:
    return SimpleNamespace(
        name=None,
        id="7",
        durationMs=durations,
        sources=[
            SimpleNamespace(numInputRows=5, latestOffset=LATEST, endOffset=DONE),
            SimpleNamespace(numInputRows=-1, latestOffset=None, endOffset="0.5"),
        ],
        sink=SimpleNamespace(numOutputRows=4),
    )


def test_what_spark_tells_is_counted() -> None:
    queries = QueryMetrics(None)
    queries.started(SimpleNamespace(id="7", name=None))
    queries.progressed(progress(latestOffset=3, triggerExecution=3))  # It waits for data.
    queries.progressed(progress(addBatch=900, triggerExecution=2000))
    queries.progressed(progress(addBatch=900, triggerExecution=4000))
    text = ClientMetrics(queries).text()
    told = values(text)
    assert told["mqlake_spark_batches_total", "7"] == 2
    assert b'source="0"} 10.0' in text
    assert b'source="1"} 0.0' in text
    assert told["mqlake_spark_lag", "7"] == 5 + 30
    assert told["mqlake_spark_written_rows_total", "7"] == 8
    assert told["mqlake_spark_batch_time_seconds_sum", "7"] == 6
    assert told["mqlake_spark_query_runs", "7"] == 1
    queries.terminated(SimpleNamespace(id="7", exception="no disk"))
    told = values(ClientMetrics(queries).text())
    assert told["mqlake_spark_query_runs", "7"] == 0
    assert told["mqlake_spark_query_failures_total", "7"] == 1
    names = {name.removesuffix("_count") for name, _ in told}
    assert names >= ALL


@pytest.mark.parametrize(
    ("latest", "done", "lag"),
    [
        ('{"physicalOffset": 900, "fingerprint": 7}', '{"physicalOffset": 100}', 800),
        (
            '{"a": {"physicalOffset": 9}, "b": {"physicalOffset": 5}}',
            '{"a": {"physicalOffset": 4}}',
            10,
        ),
        ('{"t": {"0": 5}}', '{"t": {"0": 7}}', 0),
        ("x", "{}", None),
        (None, None, None),
    ],
)
def test_the_lag_is_the_difference_of_positions(
    latest: str | None, done: str | None, lag: int | None
) -> None:
    assert query_metrics._lag(latest, done) == lag
