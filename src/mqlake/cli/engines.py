"""Choose the engine that a command's options name."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.cli.options import EngineName, UsageError
from mqlake.cli.progress import LOADING, START, Report, progress, tell_compilation
from mqlake.errors import JobError

if TYPE_CHECKING:
    from mqlake.jobs.engine import Engine
    from mqlake.spark.session import Session


def check_store(store: Path) -> None:
    """Raise StoreError if no store can be read there."""
    from mqlake.store.reader import StoreReader

    StoreReader.open(store).close()


@contextmanager
def open_engine(
    name: EngineName,
    master: str | None,
    show_progress: bool | None,
    *,
    reads: Path,
    writes: Path | None = None,
    check: Callable[[Path], None] = check_store,
) -> Generator[Engine]:
    """Yield an engine that shows its progress, for a job on these directories.

    `check` raises an error if the input of the job cannot be read. It runs before Spark is started.

    Raises:
        UsageError: `--master` is given for an engine that has no master.
        JobError: Spark cannot be started, or its executors do not share the directories.
    """
    check(reads)
    if name == "local" and master is not None:
        raise UsageError("--master needs --engine spark")
    with progress(show_progress, START if name == "spark" else LOADING) as report:
        tell_compilation()
        if name == "local":
            from mqlake.jobs.local import LocalEngine

            yield LocalEngine(progress=report)
            return

        with _open_spark(master, report) as session:
            if writes is not None:
                session.check_shared(writes, reads)
            yield session.engine


def _open_spark(master: str | None, report: Report | None) -> Session:
    from mqlake.spark.session import open_session

    try:
        return open_session(master, progress=report)
    except JobError as error:
        hint = "" if "--engine local" in str(error) else " (--engine local works without Spark)"
        raise JobError(f"{error}{hint}") from None
