"""Find a directory for the compiled kernels.

Numba's own choice (`__pycache__` beside the source, else the user's cache) ends in an error where
neither can be written, as on many Spark executors; and it keys a kernel by the file that holds it
alone, so that a change in an inlined function of another file goes unnoticed. Hence a directory of
our own, whose name is a hash over all that the machine code depends on.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SOURCES = Path(__file__).parent / "compiled"
_SHARED = (
    "dispatch/columns.py",
    "dispatch/drafts.py",
    "dispatch/verdict.py",
    "kafka/columns.py",
    "remoting/binary_header.py",
    "remoting/codes.py",
    "remoting/command.py",
    "remoting/send_runs.py",
)
_SHARED_FOLDERS = ("formats", "formats/kafka", "kafka/compiled", "remoting/compiled")
"""What else the kernels compile in: columns, the constants of formats, other layers' kernels."""


def cache_directory(parts: Iterable[str], sources: Path = SOURCES) -> Path | None:
    """Return a writable directory for machine code made from `sources` under the options `parts`.

    Where NUMBA_CACHE_DIR says, else in the package, else in the user's cache directory, else in the
    temporary directory. None where nothing can be written: then each process compiles anew.
    """
    name = fingerprint(parts, sources)
    for root in _roots():
        directory = root / name
        if _is_usable(directory):
            return directory
    return None


def fingerprint(parts: Iterable[str], sources: Path = SOURCES) -> str:
    """Return a name that changes with the sources, the Python and the options."""
    digest = hashlib.sha256()
    for part in (platform.machine(), platform.python_version(), *parts):
        digest.update(part.encode() + b"\0")
    package = sources.parents[1]
    folders = (sources, *(package / name for name in _SHARED_FOLDERS))
    shared = (path for name in _SHARED if (path := package / name).exists())
    for path in (*(file for folder in folders for file in sorted(folder.glob("*.py"))), *shared):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"kernels-{digest.hexdigest()[:16]}"


def _roots() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield SOURCES / "__pycache__"
    if base := os.environ.get("XDG_CACHE_HOME"):
        yield Path(base) / "mqlake"
    with suppress(RuntimeError):  # a user id without a home
        yield Path.home() / ".cache" / "mqlake"
    yield Path(tempfile.gettempdir()) / f"mqlake-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_usable(directory: Path) -> bool:
    """Make the directory; refuse one that others can write: what lies in it is executed."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_open_to_others(directory) or _is_open_to_others(directory.parent, stat.S_ISVTX):
            return False
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _is_open_to_others(directory: Path, but_if: int = 0) -> bool:
    """Say whether others could put a directory or file in place of ours, `but_if` the mode has."""
    status = directory.stat()
    is_ours = status.st_uid in (_user(), 0)
    return not is_ours or bool(status.st_mode & stat.S_IWOTH and not status.st_mode & but_if)
