"""The directory that a conversion makes: written beside, and renamed into place as a whole."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mqlake.errors import JobError
from mqlake.storage.local_write import fsync_directory


def require_new(out: Path) -> None:
    """Check that there is nothing at `out`, or an empty directory.

    Raises:
        JobError: there is something.
    """
    try:
        names = sorted(path.name for path in out.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise JobError(f"{out}: {error.strerror}") from error
    if names:
        raise JobError(f"{out}: not empty (it has {names[0]!r}); give a new directory")


@contextmanager
def written_beside(out: Path) -> Generator[Path]:
    """Give a new directory beside `out` that takes its place at the end of the block.

    After an exception it is removed. What is in it must be on the disk before the end.

    Raises:
        JobError: there is something at `out`.
    """
    require_new(out)
    scratch = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}.mqlake-convert")
    try:
        scratch.mkdir(parents=True)
        yield scratch
        require_new(out)
        scratch.rename(out)
        fsync_directory(out.parent)
    except OSError as error:
        raise JobError(f"{error.filename or out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def attempt(target: Path) -> Generator[Path]:
    """Give a task a directory of its own, which becomes `target` when it is complete.

    Where another attempt of the task was sooner, that one stays.
    """
    own = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.attempt")
    own.mkdir()
    try:
        yield own
        _keep_first(own, target)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _keep_first(own: Path, target: Path) -> None:
    try:
        own.rename(target)
        fsync_directory(target.parent)
    except OSError:
        if not target.exists():
            raise
