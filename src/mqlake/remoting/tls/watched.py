"""A context whose files may change: it is created again, and replaced once the files fit together.

Upstream: `FileWatchService`.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.remoting.tls.options import ClientTls, ServerTls

_log: Final = logging.getLogger("mqlake.remoting")

State = tuple[tuple[int, int, int] | None, ...]


class WatchedContext:
    """The newest context that could be created. Its methods read files, in any one thread at a
    time.

    A certificate and its key are replaced one after the other, in either order. Between these two
    moments they do not belong together, and the context of before remains.

    Args:
        files: the files that `make` reads.
        make: creates a context.

    Attributes:
        now: the context; None until `load` has returned.
    """

    def __init__(self, files: ServerTls | ClientTls, make: Callable[[], ssl.SSLContext]) -> None:
        self._paths = [Path(path) for path in (files.cert, files.key, files.ca) if path]
        self._make = make
        self.now: ssl.SSLContext | None = None
        self._loaded: State = ()
        self._refused: State | None = None

    @property
    def has_files(self) -> bool:
        """Return whether there are files that may change."""
        return bool(self._paths)

    def load(self) -> ssl.SSLContext:
        """Create the context if that was not done yet; return it.

        Raises:
            MqlakeError: it cannot be created.
        """
        if self.now is None:
            state = self._state()
            self.now, self._loaded = self._make(), state
        return self.now

    def refresh(self) -> None:
        """Replace the context if its files have changed and fit together; log both outcomes."""
        if self.now is None or (state := self._state()) == self._loaded:
            return
        try:
            made = self._make()
        except MqlakeError as error:
            if state != self._refused:
                self._refused = state
                _log.warning("%s; the certificate of before remains in use", error)
            return
        self.now, self._loaded, self._refused = made, state, None
        _log.info("TLS: %s: loaded again", ", ".join(map(str, self._paths)))

    def _state(self) -> State:
        return tuple(map(_state_of, self._paths))


def _state_of(path: Path) -> tuple[int, int, int] | None:
    """Return what differs after a change of a file; None if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
