"""What commands that run until they are stopped need: a Spark session, and a way to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.cli.output import draw, timed, write_json
from mqlake.cli.progress import START, Report, progress, tell_compilation

if TYPE_CHECKING:
    from mqlake.lake.options import FollowOptions
    from mqlake.spark.session import Session

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals() -> Generator[threading.Event]:
    """Yield an event that the first SIGTERM or Ctrl-C sets; a second one ends the program."""
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
    """Yield a Spark session whose executors share both directories, and a function that shows
    progress.

    Raises:
        StoreError: `reads` is not a store.
        JobError: Spark cannot be started, or its executors do not share the directories.
    """
    from mqlake.spark.session import open_session
    from mqlake.store.reader import StoreReader

    StoreReader.open(reads).close()
    with progress(show_progress, START) as report:
        tell_compilation()
        with open_session(master, progress=report) as session:
            session.check_shared(writes, reads)
            yield session, report


def beside(options: FollowOptions, master: str | None, *, is_check: bool, json: bool) -> int:
    """Check a table, or replay its dead letters; return the exit code."""
    from mqlake.cli.views import follow as views
    from mqlake.jobs.local import LocalEngine
    from mqlake.spark.follow import check, replay

    start = time.perf_counter()
    if is_check:
        checked = check(options, LocalEngine())
        seconds = time.perf_counter() - start
        if json:
            write_json({**timed(checked, seconds), "ok": checked.ok})
        else:
            draw(views.check_view(checked, seconds))
        return 0 if checked.ok else 1
    with _spark_for_bodies(options, master) as session:
        replayed = replay(options, session)
    seconds = time.perf_counter() - start
    if json:
        write_json(timed(replayed, seconds))
    else:
        draw(views.replay_view(replayed, seconds))
    return 0


@contextmanager
def _spark_for_bodies(options: FollowOptions, master: str | None) -> Generator[Session | None]:
    """Yield a Spark session if bodies are to be decoded, since only Spark does that."""
    if options.body is None:
        yield None
        return
    from mqlake.spark.session import open_session

    with open_session(master) as session:
        yield session
