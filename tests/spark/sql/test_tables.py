"""Tables and views in plain SQL over the sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlake.spark.functions.register import register
from tests import golden_kafka
from tests.golden import store
from tests.spark.files import digests
from tests.spark.servers import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def sql(spark: SparkSession) -> Iterator[Sql]:
    """Run a statement in a database of its own, and return its rows."""

    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement).collect()]

    run("CREATE DATABASE tables_test")
    run("USE tables_test")
    yield run
    run("USE default")
    run("DROP DATABASE tables_test CASCADE")


@pytest.fixture
def path() -> Path:
    return store("rmq5-clean").path


def messages_of(topic: str) -> int:
    return sum(message["topic"] == topic for message in store("rmq5-clean").messages())


def test_a_table_keeps_its_options(sql: Sql, path: Path) -> None:
    sql(f"CREATE TABLE a USING rocketmq OPTIONS (path '{path}', subscribe 'TopicA')")
    assert sql("SELECT topic, count(*) FROM a GROUP BY topic") == [
        ("TopicA", messages_of("TopicA"))
    ]
    assert sql("SELECT count(*) FROM a WITH (subscribe 'TopicB')") == [(messages_of("TopicB"),)]


def test_a_table_at_a_location(sql: Sql, path: Path) -> None:
    sql(
        f"CREATE TABLE b USING rocketmq OPTIONS (columns 'topic,queueId') LOCATION '{path}' "
        "COMMENT 'a comment' TBLPROPERTIES ('team' = 'orders')"
    )
    found = sql("SELECT * FROM b")
    assert len(found) == len(store("rmq5-clean").messages())
    assert all(len(row) == 2 for row in found)


def test_kafkas_logs_are_tables_likewise(sql: Sql) -> None:
    logs = golden_kafka.log_directory()
    sql(f"CREATE TABLE k USING `kafka-log` OPTIONS (subscribe 'logappend') LOCATION '{logs}'")
    assert sql("SELECT DISTINCT topic FROM k") == [("logappend",)]
    sql(f"CREATE TEMPORARY VIEW v USING `kafka-log` OPTIONS (path '{logs}', subscribe 'logappend')")
    assert sql("SELECT count(*) FROM v") == sql("SELECT count(*) FROM k")
    sql("DROP VIEW v")


def test_a_temporary_view_with_columns(sql: Sql, path: Path) -> None:
    sql(
        "CREATE TEMPORARY VIEW v (queueOffset bigint, topic string) USING rocketmq "
        f"OPTIONS (path '{path}', subscribe 'TopicA')"
    )
    assert {topic for _, topic in sql("SELECT * FROM v")} == {"TopicA"}
    sql("DROP VIEW v")


def test_a_table_with_columns_takes_its_options_from_the_query(sql: Sql, path: Path) -> None:
    sql(f"CREATE TABLE c (topic string, body binary) USING rocketmq LOCATION '{path}'")
    with pytest.raises(Exception, match=r"created with a list of columns .* WITH \(path '…'\)"):
        sql("SELECT * FROM c")
    sql(f"CREATE VIEW d AS SELECT topic FROM c WITH (path '{path}', subscribe 'TopicA')")
    assert sql("SELECT DISTINCT topic FROM d") == [("TopicA",)]


def test_options_are_checked_when_the_table_is_created(sql: Sql, path: Path) -> None:
    wrong = {
        "path 'X', subscrib 'TopicA'": "no option 'subscrib'; the nearest is subscribe",
        "path 'X', minPartitions '0'": "option minPartitions: '0' is not an integer of at least 1",
        "subscribe 'TopicA'": "option path is missing",
        "path 'X', secretKey 'hidden'": "option secretkey: a table would show it to everyone",
    }
    temporary = sql("SHOW TABLES")  # views of the session, if other tests have left some
    for options, message in wrong.items():
        with pytest.raises(Exception, match=message):
            sql(f"CREATE TABLE e USING rocketmq OPTIONS ({options.replace('X', str(path))})")
    assert sql("SHOW TABLES") == temporary
    sql(f"CREATE TABLE e USING rocketmq LOCATION '{path}'")
    with pytest.raises(Exception, match="no option 'subscrib'; the nearest is subscribe"):
        sql("SELECT * FROM e WITH (subscrib 'TopicA')")


def test_nothing_that_is_done_to_a_table_touches_the_store(sql: Sql, tmp_path: Path) -> None:
    path = store("rmq5-clean").copy(tmp_path / "store")
    before = digests(path)
    sql(f"CREATE TABLE t USING rocketmq LOCATION '{path}'")
    for statement in (
        "TRUNCATE TABLE t",
        "DELETE FROM t",
        "INSERT OVERWRITE t SELECT * FROM t",
        "INSERT INTO t SELECT * FROM t",
    ):
        with pytest.raises(Exception, match=r"does not support|WITH \(path '…'\) SELECT"):
            sql(statement)
    sql("DROP TABLE t")
    assert digests(path) == before


def test_rows_are_inserted_with_options_in_the_statement(sql: Sql, tmp_path: Path) -> None:
    small = f"path '{tmp_path / 'new'}', mappedFileSizeCommitLog '65536', maxHashSlotNum '10'"
    sql("CREATE TABLE sink (topic string, body binary, keys array<string>) USING rocketmq")
    for number in range(2):
        sql(
            f"INSERT INTO sink WITH ({small}) "
            f"SELECT 'Orders', cast('{number}' AS binary), array('key-{number}')"
        )
    sql(f"CREATE TABLE made USING rocketmq LOCATION '{tmp_path / 'new'}'")
    rows = "SELECT topic, cast(body AS string), keys[0] FROM made ORDER BY physicalOffset"
    assert sql(rows) == [("Orders", "0", "key-0"), ("Orders", "1", "key-1")]


def test_a_table_is_read_as_a_stream(spark: SparkSession, sql: Sql, path: Path) -> None:
    sql(f"CREATE TABLE a USING rocketmq OPTIONS (path '{path}', subscribe 'TopicA')")
    query = (
        spark.readStream.option("startingOffsets", "earliest")
        .table("a")
        .writeStream.format("memory")
        .queryName("from_table")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sql("SELECT count(*) FROM from_table") == [(messages_of("TopicA"),)]
    sql("DROP VIEW from_table")


def test_a_schema_taken_from_a_table_brings_no_options_to_another_path(
    spark: SparkSession, sql: Sql, path: Path
) -> None:
    sql(f"CREATE TABLE a USING rocketmq OPTIONS (path '{path}', subscribe 'TopicA')")
    other = store("rmq49-clean")
    frame = spark.read.format("rocketmq").schema(spark.table("a").schema).load(str(other.path))
    assert frame.count() == len(other.messages())


def test_the_statements_of_the_page_work(spark: SparkSession, sql: Sql, tmp_path: Path) -> None:
    register(spark)
    golden = store("rmq5-clean").path
    text = (ROOT / "docs" / "spark-sql.md").read_text()
    spark.sql("SELECT 'a' AS id").createOrReplaceTempView("corrections")
    statements = [
        statement
        for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        for statement in block.split(";")
        if statement.strip()
    ]
    places = {"/data/store": str(golden), "/data/new-store": str(tmp_path / "new")}
    for statement in statements:
        for old, new in places.items():
            statement = statement.replace(f"{old}'", f"{new}'")
        sql(statement.replace("'Orders')", "'TopicA')"))
    assert sql("SELECT count(*) FROM orders") == [(messages_of("TopicA"),)]
    assert sql(f"SELECT count(*) FROM orders WITH (path '{tmp_path / 'new'}')") == [(1,)]
    assert len(statements) >= 5
    spark.catalog.dropTempView("corrections")
