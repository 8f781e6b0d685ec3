"""What a command that goes on and on needs: a Spark, and a way to be stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.cli.progress import Report, progress, tell_compilation

if TYPE_CHECKING:
    from mqlake.spark.session import Session

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals() -> Generator[threading.Event]:
    """Give an event that the first SIGTERM or Ctrl-C sets; a second one ends the program."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(*_: object) -> None:
        stop.set()
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def open_spark(
    master: str | None, show_progress: bool | None, reads: Path, writes: Path
) -> Generator[tuple[Session, Report | None]]:
    """Give a Spark session whose executors share both directories, and what takes progress.

    Raises:
        StoreError: `reads` is no store.
        JobError: Spark cannot be started, or its executors do not share the directories.
    """
    from mqlake.spark.session import open_session
    from mqlake.store.reader import StoreReader

    StoreReader.open(reads).close()
    tell_compilation()
    with progress(show_progress) as report, open_session(master, progress=report) as session:
        session.check_shared(writes, reads)
        yield session, report
