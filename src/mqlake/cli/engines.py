"""The engine that a command's options name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.cli.options import EngineName, UsageError
from mqlake.cli.progress import Report, progress
from mqlake.errors import JobError

if TYPE_CHECKING:
    from mqlake.jobs.engine import Engine
    from mqlake.spark.session import Session


@contextmanager
def open_engine(
    name: EngineName,
    master: str | None,
    show_progress: bool | None,
    *,
    reads: Path,
    writes: Path | None = None,
) -> Generator[Engine]:
    """Give an engine that shows its progress, for a job on these directories.

    Raises:
        UsageError: a master for an engine that has none.
        JobError: Spark cannot be started, or its executors do not share the directories.
    """
    _check_readable(reads)
    with progress(show_progress) as report:
        if name == "local":
            if master is not None:
                raise UsageError("--master goes with --engine spark only")
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
        hint = "" if "--engine local" in str(error) else " (--engine local does without Spark)"
        raise JobError(f"{error}{hint}") from None


def _check_readable(store: Path) -> None:
    """Raise StoreError now, and not after Spark has started."""
    from mqlake.store.reader import StoreReader

    StoreReader.open(store).close()
