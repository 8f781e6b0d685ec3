"""Check that all executors share the file system of a job's output before the job starts.

Tasks write their parts of a file into the driver's directory. On a cluster whose hosts each have
their own directory of that name, nothing would fail, but parts of the result would be missing. So
driver and tasks must first see each other's marks.
"""

from __future__ import annotations

import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from mqlake.errors import JobError
from mqlake.jobs.engine import Engine

PREFIX = ".mqlake-shared-"
TASKS_A_SLOT = 2
PAUSE = 0.1
"""Seconds that a task waits, so that Spark must use all of its executors."""

PATIENCE = 3.0
"""Seconds within which a mark must appear; network file systems cache for a while that a file did
not exist.
"""


@dataclass(frozen=True)
class SharedCheck:
    """The input of a task of the check: it finds the driver's mark, leaves one, and finds the
    inputs.
    """

    directory: str
    token: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """The result of a task of the check: its host, its own mark, and what is wrong ("" if
    nothing).
    """

    host: str
    mark: str
    complaint: str


def check_shared(engine: Engine, directory: Path, *inputs: Path) -> None:
    """Raise JobError unless every executor reads and writes `directory`, and reads `inputs`.

    If the directory does not exist yet, its nearest existing parent is checked. No file remains.
    """
    directory = next(path for path in _upwards(directory.absolute()) if path.exists())
    token = uuid.uuid4().hex
    try:
        _leave(directory, token, "driver")
        look = SharedCheck(str(directory), token, tuple(str(path.absolute()) for path in inputs))
        # The first task makes a cluster start its executors; only then is the cluster's size known.
        engine.run(look_around, [look], "check the output directory")
        looks = [look] * (TASKS_A_SLOT * engine.parallelism)
        for seen in engine.run(look_around, looks, "check the output directory"):
            complaint = seen.complaint or _missing(directory, token, seen)
            if complaint:
                raise JobError(complaint)
    except OSError as error:
        raise JobError(f"{directory} cannot be written: {error.strerror}") from None
    finally:
        for mark in directory.glob(f"{PREFIX}{token}-*"):
            mark.unlink(missing_ok=True)


def look_around(look: SharedCheck) -> Seen:
    """Return what this executor sees of the directory and the inputs (a task)."""
    host, mark = socket.gethostname(), uuid.uuid4().hex
    time.sleep(PAUSE)
    directory = Path(look.directory)
    if not _appears(directory, look.token, "driver"):
        return Seen(host, mark, _not_shared(directory, host))
    for path in look.inputs:
        if not Path(path).exists():
            return Seen(host, mark, f"the executor on {host} does not see {path}")
    try:
        _leave(directory, look.token, mark)
    except OSError as error:
        return Seen(
            host, mark, f"the executor on {host} cannot write {directory}: {error.strerror}"
        )
    return Seen(host, mark, "")


def _upwards(path: Path) -> tuple[Path, ...]:
    return (path, *path.parents)


def _missing(directory: Path, token: str, seen: Seen) -> str:
    return "" if _appears(directory, token, seen.mark) else _not_shared(directory, seen.host)


def _not_shared(directory: Path, host: str) -> str:
    return (
        f"{directory} is not shared with the executor on {host}: choose an output directory on a "
        "file system that all executors mount"
    )


def _leave(directory: Path, token: str, name: str) -> None:
    with (directory / f"{PREFIX}{token}-{name}").open("x") as mark:
        mark.write(token)


def _appears(directory: Path, token: str, name: str) -> bool:
    path = directory / f"{PREFIX}{token}-{name}"
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return path.read_text() == token
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
