"""Count the messages of each tag with Spark SQL: `python examples/tags_with_spark.py STORE`."""

from __future__ import annotations

import sys

from mqlake.spark import messages, open_session


def main(store: str) -> None:
    """Read only the columns that the query needs: the bodies stay where they are."""
    with open_session() as session:
        frame = messages(session.spark, store, columns=["topic", "tags"])
        frame.createOrReplaceTempView("messages")
        counts = session.spark.sql("SELECT tags, count(*) AS n FROM messages GROUP BY tags")
        for tags, count in sorted(counts.collect(), key=lambda row: -row.n):
            print(f"{count:6} {tags}")


if __name__ == "__main__":
    main(*sys.argv[1:])
