"""A world of real files, in which the system refuses one call: for what opens its files itself."""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

_KINDS = {
    "open": "open",
    "listdir": "open",
    "scandir": "open",
    "mkdir": "make",
    "pread": "read",
    "preadv": "read",
    "pwrite": "write",
    "write": "write",
    "truncate": "write",
    "ftruncate": "write",
    "posix_fallocate": "write",
    "fsync": "sync",
    "fdatasync": "sync",
    "rename": "name",
    "replace": "name",
    "unlink": "name",
    "remove": "name",
    "rmdir": "name",
    "link": "name",
}
"""The functions of `os` that can fail, by the kind of what they do."""

_FAILURES = {
    "INPUT_OUTPUT": (errno.EIO, {"write", "sync", "name", "make"}),
    "FULL": (errno.ENOSPC, {"write", "make"}),
    "NO_DESCRIPTOR": (errno.EMFILE, {"open"}),
    "NO_MEMORY": (errno.ENOMEM, {"map"}),
    "READ": (errno.EIO, {"read", "open"}),
}
LOCAL_FAILURES = tuple(_FAILURES)


class LocalWorld:
    """A directory of real files, `root`. Calls that concern it are counted, and one of them fails.

    A new process may try again whatever has failed: nothing here is final.
    """

    is_final = False

    def __init__(self, failure: str, at: int) -> None:
        self._number, self._kinds = _FAILURES[failure]
        self._at, self._operations = at, 0
        self._counted: Counter[str] = Counter()
        self.failure: tuple[str, int] | None = None
        self._undo = ExitStack()
        self.root = Path(self._undo.enter_context(_directory()))
        self._counts = False
        self._paths: dict[int, str] = {}

    def watch(self) -> None:
        """Begin to count."""
        for name, kind in _KINDS.items():
            self._replace(os, name, kind)
        self._replace(io, "open", "open")
        self._replace(builtins, "open", "open")
        self._replace(mmap, "mmap", "map")
        self._counts = True

    def count(self, failure: str) -> int:
        return sum(self._counted[kind] for kind in _FAILURES[failure][1])

    def restart(self) -> None:
        """Do nothing: each step opens its files itself."""

    def close(self) -> None:
        self._counts = False
        self._undo.close()

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Count nothing meanwhile: somebody looks."""
        self._counts, counted = False, self._counts
        try:
            yield
        finally:
            self._counts = counted

    @contextmanager
    def left(self) -> Iterator[Path]:
        """Copy the directory, as the next process finds it after a kill."""
        with self.unwatched(), _directory() as other:
            yield Path(shutil.copytree(self.root, Path(other, "left")))

    def _replace(self, module: Any, name: str, kind: str) -> None:
        true = getattr(module, name)
        if isinstance(true, type):  # A class is also asked for its constants.
            made = type(true.__name__, (true,), {"__new__": self._failing(true.__new__, kind, 1)})
            self._undo.enter_context(mock.patch.object(module, name, made))
        else:
            failing = self._failing(true, kind, 0)
            self._undo.enter_context(mock.patch.object(module, name, failing))

    def _failing(self, true: Callable[..., Any], kind: str, place: int) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> Any:
            path = self._path(arguments[place]) if len(arguments) > place else None
            if path is not None and kind == "open" and _writes(arguments[place + 1 :]):
                self._count(path, "make")
            if path is not None:
                self._count(path, kind)
            if kind == "sync" and path is not None:
                return None  # Kills need none, and it takes most of the time.
            found = true(*arguments, **others)
            if true.__name__ == "open" and isinstance(found, int) and path is not None:
                self._paths[found] = path
            elif true.__name__ == "open" and isinstance(found, int):
                self._paths.pop(found, None)
            return found

        return call

    def _path(self, what: object) -> str | None:
        if isinstance(what, int):
            return self._paths.get(what)
        path = os.fspath(what) if isinstance(what, str | os.PathLike) else ""
        return str(path) if str(path).startswith(str(self.root)) else None

    def _count(self, path: str, kind: str) -> None:
        if not self._counts:
            return
        self._counted[kind] += 1
        if kind not in self._kinds:
            return
        self._operations += 1
        if self._operations == self._at:
            self.failure = path, self._number
            raise OSError(self._number, os.strerror(self._number), path)


def _directory() -> tempfile.TemporaryDirectory[str]:
    """Return a new directory, in memory if the system has some."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="mqlake-compare-", dir=place)


def _writes(rest: tuple[Any, ...]) -> bool:
    flags = rest[0] if rest else 0
    return bool(flags & os.O_CREAT) if isinstance(flags, int) else "w" in str(flags)
