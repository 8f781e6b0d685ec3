"""What a table keeps of its options, without a Spark around it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from mqlake.errors import FormatError
from mqlake.spark.options.tables import (
    is_statement,
    options_of_query,
    options_of_statement,
    with_kept,
)

# What Spark 4.2 and 4.3 hand over for OPTIONS (subscribe 'Orders') LOCATION '/store'.
STATEMENT = {
    "location": "file:/store",
    "path": "file:/store",
    "owner": "root",
    "provider": "rocketmq",
    "team": "a table property",
    "subscribe": "Orders",
    "option.subscribe": "Orders",
}
SCHEMA = StructType([StructField("topic", StringType(), False, {"comment": "c"})])


def test_options_are_told_from_properties() -> None:
    assert is_statement(STATEMENT, "rocketmq")
    assert not is_statement(STATEMENT, "kafka-log")
    assert not is_statement({"path": "/store"}, "rocketmq")
    assert options_of_statement(STATEMENT) == {"subscribe": "Orders", "path": "file:/store"}
    cluster = {"provider": "rocketmq", "nameserver": "a:1", "option.nameserver": "a:1"}
    assert options_of_statement(cluster) == {"nameserver": "a:1"}


def test_a_query_has_the_options_of_its_table() -> None:
    kept = with_kept(SCHEMA, {"subscribe": "Orders", "path": "/store"})
    assert kept["topic"].metadata["comment"] == "c"
    assert options_of_query({}, kept) == {"subscribe": "Orders", "path": "/store"}
    query = {"Subscribe": "Refunds", "minPartitions": "2"}
    assert options_of_query(query, kept) == {**query, "path": "/store"}


@pytest.mark.parametrize("place", [{"path": "/other"}, {"nameServer": "a:1"}])
def test_a_query_about_another_place_has_only_its_own(place: dict[str, str]) -> None:
    kept = with_kept(SCHEMA, {"subscribe": "Orders", "path": "/store"})
    assert options_of_query(place, kept) == place


def test_secrets_and_missing_options_are_refused() -> None:
    for name in ("secretKey", "fs.azure.account.key.box.example", "fs.s3a.access.key"):
        with pytest.raises(FormatError, match=f"option {name}: a table would show it"):
            options_of_statement({f"option.{name}": "x", name: "x"})
    named = {"fs.s3a.aws.credentials.provider": "A", "path": "s3a://box/store"}
    given = named | {f"option.{name}": value for name, value in named.items()}
    assert options_of_statement(given)["fs.s3a.aws.credentials.provider"] == "A"
    with pytest.raises(FormatError, match="created with a list of columns"):
        options_of_query({}, SCHEMA)
