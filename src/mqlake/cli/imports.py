"""Report on a terminal that a command still imports what it needs.

Imports take a second or two, and much longer on a busy machine or a slow disk.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from mqlake.pace import noted

_IMPORTING = "importlib._bootstrap"
_OWN = "mqlake"


@contextmanager
def reported_imports() -> Generator[None]:
    """Report every 1.5 s which package this thread imports, until it does something else.

    What else commands wait for, they report themselves. Nothing is reported without a terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    thread = threading.get_ident()

    def note(seconds: float) -> bool:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        package = imported_package(frames.get(thread))
        if package is not None:
            sys.stderr.write(f"mqlake: loading {package}, {seconds:.0f} s\n")
            sys.stderr.flush()
        return package is not None

    with noted(note):
        yield


def imported_package(frame: FrameType | None) -> str | None:
    """Return the package that mqlake is importing, or mqlake itself; None if nothing is imported.

    Args:
        frame: the innermost frame of a stack.
    """
    found = None
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING and "name" in frame.f_locals:
            package = str(frame.f_locals["name"]).partition(".")[0]
            if found is None or package != _OWN:
                found = package
        frame = frame.f_back
    return found
