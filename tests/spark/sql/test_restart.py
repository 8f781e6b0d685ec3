"""Tables outlive the session if the catalog is on disk: Spark's own Hive catalog, over Derby."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlake.spark.session import open_session
from tests.golden import store

pytestmark = [
    pytest.mark.nightly,  # two sessions with Hive, one after the other
    pytest.mark.spark,
    pytest.mark.usefixtures("alone"),
]


def run(directory: Path, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in a session of their own; return the rows of the last one."""
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={directory / 'derby.log'}",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={directory / 'metastore'};create=true"
        ),
    }
    with open_session("local[2]", settings=settings) as session:
        found = [session.spark.sql(statement).collect() for statement in statements]
    return [tuple(row) for row in found[-1]]


def test_tables_and_views_are_there_after_a_restart(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    topic_a = sum(message["topic"] == "TopicA" for message in golden.messages())
    run(
        tmp_path,
        f"CREATE TABLE a USING rocketmq OPTIONS (path '{golden.path}', subscribe 'TopicA')",
        "CREATE VIEW counted AS SELECT topic, count(*) n FROM a GROUP BY topic",
    )
    assert run(tmp_path, "SELECT * FROM counted") == [("TopicA", topic_a)]
