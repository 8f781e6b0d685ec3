"""The directory of a conversion: it is written beside its place, and renamed as a whole."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mqlake.errors import JobError
from mqlake.storage.local_write import fsync_directory


def require_new(out: Path) -> None:
    """Check that `out` does not exist, or is an empty directory.

    Raises:
        JobError: `out` exists and is not empty.
    """
    try:
        names = sorted(path.name for path in out.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise JobError(f"{out}: {error.strerror}") from error
    if names:
        raise JobError(f"{out}: not empty (it contains {names[0]!r}); choose a new directory")


@contextmanager
def written_beside(out: Path) -> Generator[Path]:
    """Yield a new directory beside `out`, which is renamed to `out` at the end of the block.

    After an exception it is removed. Its files must be durable before the end of the block.

    Raises:
        JobError: `out` exists.
    """
    require_new(out)
    scratch = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}.mqlake-convert")
    try:
        scratch.mkdir(parents=True)
        yield scratch
        require_new(out)
        _rename_durably(scratch, out)
    except OSError as error:
        raise JobError(f"{error.filename or out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _rename_durably(scratch: Path, out: Path) -> None:
    scratch.rename(out)
    try:
        fsync_directory(out.parent)
    except OSError:
        # A conversion that failed leaves nothing, so that it can be run again.
        out.rename(scratch)
        raise


@contextmanager
def attempt(target: Path) -> Generator[Path]:
    """Yield a directory for a task, which becomes `target` when it is complete.

    If another attempt of the task completed first, that one remains.
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
