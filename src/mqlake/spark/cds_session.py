"""The session whose classes `mqlake.spark.cds` archives: tasks, a DataFrame, a query."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from mqlake.spark.driver import wait_until_ended
from mqlake.spark.launch import QUICK_START
from mqlake.spark.session import open_session


def double(number: int) -> int:
    """Return twice the number: a task."""
    return 2 * number


def main(archive: Path) -> None:
    """Run what mqlake's commands and its demo run, in a JVM that writes `archive` at its end."""
    flags = shlex.join([*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}"])
    with open_session("local[2]", settings={"spark.driver.extraJavaOptions": flags}) as session:
        for _ in range(2):
            session.engine.run(double, [1, 2], "archive classes")
        numbers = archive.parent / "numbers"
        spark: Any = session.spark
        spark.range(10).selectExpr("id", "cast(id as string) name").write.parquet(str(numbers))
        spark.read.parquet(str(numbers)).createOrReplaceTempView("numbers")
        query = (
            "select name, count(*) n, max(id) from numbers where id > 1 group by name order by n"
        )
        spark.sql(query).collect()
        spark.sql(query).toArrow()
    wait_until_ended()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
