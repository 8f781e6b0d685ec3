"""Find a directory for the compiled kernels.

By default, Numba caches a kernel in `__pycache__` beside its source, otherwise in the user's cache.
If neither can be written, as on many Spark executors, this is an error. Numba also does not notice
a change in an inlined function of another file. Therefore the kernels have a directory of their
own, whose name is a hash of everything that the machine code depends on.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_KERNELS = ("kernels/**/*.py", "**/compiled/*.py")
_SHARED = (
    "formats/**/*.py",
    "dispatch/answers.py",
    "dispatch/batch.py",
    "dispatch/columns.py",
    "dispatch/drafts.py",
    "dispatch/queue_read.py",
    "dispatch/queue_table.py",
    "dispatch/value_columns.py",
    "dispatch/verdict.py",
    "dispatch/writing/packed_layout.py",
    "kafka/batches/columns.py",
    "protocol/binary_fields.py",
    "protocol/codes.py",
    "protocol/command.py",
    "protocol/signature.py",
    "broker/lane/layout.py",
    "broker/lane/pull_layout.py",
    "broker/lane/pull_tables.py",
    "broker/lane/user_table.py",
    "broker/state/lite/names.py",
    "broker/state/lite/next_offsets.py",
    "broker/state/lite/sent_properties.py",
    "store/light/light_columns.py",
)
"""Other sources that kernels compile in: columns, what is kept for a kernel, and the constants of
formats and frames.
"""
_UNUSED_FOR = 30 * 86_400
"""Seconds after which an unused directory is removed, when another one is created."""
_DAY = 86_400
_HASH = 16
"""Hexadecimal digits of the hash in a directory's name."""
_OURS = re.compile(rf"kernels-[0-9a-f]{{{_HASH}}}")


def cache_directory(parts: Iterable[str], package: Path = PACKAGE) -> Path | None:
    """Return a writable directory for the machine code of a package.

    It is the first of these that can be written: NUMBA_CACHE_DIR, the package, the user's cache
    directory, the temporary directory. Directories of other sources or options that no process has
    used for 30 days are removed.

    Args:
        parts: options of the compilation.

    Returns:
        None if no directory can be written: then each process compiles again.
    """
    name = fingerprint(parts, package)
    for root in _roots():
        directory = root / name
        is_new = not directory.exists()
        if not _is_usable(directory):
            continue
        _note_use(directory)
        if is_new:
            _prune(root)
        return directory
    return None


def fingerprint(parts: Iterable[str], package: Path = PACKAGE) -> str:
    """Return a name that changes with the sources, the Python and the options."""
    digest = hashlib.sha256()
    for part in (platform.machine(), platform.python_version(), *parts):
        digest.update(part.encode() + b"\0")
    for pattern in (*_KERNELS, *_SHARED):
        for path in sorted(package.glob(pattern)):
            name = path.relative_to(package).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"kernels-{digest.hexdigest()[:_HASH]}"


def _note_use(directory: Path) -> None:
    """Set the directory's modification time to now, at most once a day."""
    with suppress(OSError):
        if time.time() - directory.stat().st_mtime > _DAY:
            os.utime(directory)


def _prune(root: Path) -> None:
    """Remove directories that have not been used for a long time."""
    oldest = time.time() - _UNUSED_FOR
    with suppress(OSError):
        for directory in root.iterdir():
            if not _OURS.fullmatch(directory.name):
                continue
            if directory.stat().st_mtime < oldest and not _is_open_to_others(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _roots() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield PACKAGE / "kernels" / "__pycache__"
    if base := os.environ.get("XDG_CACHE_HOME"):
        yield Path(base) / "mqlake"
    with suppress(RuntimeError):  # a user id without a home
        yield Path.home() / ".cache" / "mqlake"
    yield Path(tempfile.gettempdir()) / f"mqlake-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_usable(directory: Path) -> bool:
    """Create the directory; refuse one that others can write, because its files are executed."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_open_to_others(directory) or _is_open_to_others(directory.parent, stat.S_ISVTX):
            return False
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _is_open_to_others(directory: Path, unless: int = 0) -> bool:
    """Return whether others could replace our files or directories in a directory.

    Args:
        unless: a mode bit that prevents this.
    """
    status = directory.stat()
    is_ours = status.st_uid in (_user(), 0)
    return not is_ours or bool(status.st_mode & stat.S_IWOTH and not status.st_mode & unless)
