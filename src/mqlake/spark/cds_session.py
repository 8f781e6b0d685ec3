"""The session whose classes `mqlake.spark.cds` archives: tasks, a DataFrame, SQL, a follow."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from mqlake.lake.options import STATE, FollowOptions, Format
from mqlake.spark.driver import wait_until_ended
from mqlake.spark.follow.job import follow
from mqlake.spark.launch import QUICK_START
from mqlake.spark.session import Session, open_session
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore

SMALL = {"mappedFileSizeCommitLog": 1 << 16, "maxHashSlotNum": 16, "maxIndexNum": 64}


def double(number: int) -> int:
    """Return twice the number: a task."""
    return 2 * number


def _follow(session: Session, scratch: Path) -> None:
    """Run a streaming query, which needs the most classes."""
    with BlockingMessageStore.open(scratch / "store", SMALL) as store:
        store.put(Message("topic", b"body"))
    out = scratch / "table"
    state = out / STATE / "checkpoint"
    options = FollowOptions(
        format=Format.PARQUET, store=scratch / "store", out=out, checkpoint=state, once=True
    )
    follow(session, options)


def main(archive: Path) -> None:
    """Run what mqlake's commands and its demo run, in a JVM that writes `archive` when it exits."""
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
        _follow(session, archive.parent)
    wait_until_ended()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
