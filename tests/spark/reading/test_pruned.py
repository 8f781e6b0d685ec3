"""The source builds only the columns that a query uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mqlake.spark import pruned
from tests.golden import store
from tests.query.store.truth import expected_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark]

Query = Callable[["DataFrame"], "DataFrame"]

QUERIES: dict[str, tuple[Query, set[str]]] = {
    "count": (lambda all_: all_.groupBy().count(), {"physicalOffset"}),
    "group": (lambda all_: all_.groupBy("topic").count(), {"topic"}),
    "filter": (
        lambda all_: all_.where("queueId = 1 AND tags IS NOT NULL").select("body"),
        {"queueId", "tags", "body"},
    ),
    "in a function": (lambda all_: all_.selectExpr("length(body) AS size"), {"body"}),
    "join": (
        lambda all_: all_.select("uniqKey").join(all_.select("uniqKey", "queueOffset"), "uniqKey"),
        {"uniqKey", "queueOffset"},
    ),
    "second in a union": (
        lambda all_: all_.sparkSession.createDataFrame(
            [("t", 1)], "topic string, queueOffset long"
        ).union(all_.select("topic", "queueOffset")),
        {"topic", "queueOffset"},
    ),
    "second in a union, as it is": (lambda all_: all_.limit(1).union(all_), set()),
    "only in a subquery": (
        lambda all_: (
            all_.where("queueOffset > 0")
            .select("topic")
            .where(
                all_.agg({"bodyCrc": "avg"}).scalar() > 0  # type: ignore[operator]
            )
        ),
        {"topic", "queueOffset", "bodyCrc"},
    ),
    "everything": (lambda all_: all_.drop("body").drop("keys"), set()),
    "as it is": (lambda all_: all_, set()),
}


def built(frame: DataFrame) -> set[str]:
    """Return the columns of the source in a plan."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found: set[str] = set()
    for number in range(leaves.size()):
        output = leaves.apply(number).output()
        found |= {str(output.apply(place).name()) for place in range(output.size())}
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_only_what_is_used(spark: SparkSession, name: str) -> None:
    query, columns = QUERIES[name]
    path = str(store("rmq5-clean").path)
    whole = spark.read.format("rocketmq").load(path)
    found = pruned(spark, query, path)
    assert found.schema == query(whole).schema
    assert built(found) == (columns or set(query(whole).columns))


def test_the_result_is_the_same(spark: SparkSession) -> None:
    golden = store("rmq5-clean")
    counts = pruned(
        spark,
        lambda all_: all_.groupBy("topic").count(),
        str(golden.path),
        options={"subscribe": "TopicA,TopicB", "columns": "body"},
    )
    expected = Counter(row["topic"] for row in expected_rows(golden))
    assert dict(counts.collect()) == {name: expected[name] for name in ("TopicA", "TopicB")}
