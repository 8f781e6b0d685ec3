"""Report that work continues, often enough that nobody takes a program for dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

PACE = 1.5
"""Seconds between two notes; nobody should wait for 2 s without one."""


@contextmanager
def noted(note: Callable[[float], object], each_pace: int = 1) -> Generator[None]:
    """Call `note` from a thread every `PACE` seconds until the block ends, with the seconds so far.

    It is not called again once it has returned False, or could not write: stderr may be closed, or
    read by nobody.

    Args:
        each_pace: how often it is called in `PACE` seconds.
    """
    begin, is_over = time.perf_counter(), threading.Event()

    def repeat() -> None:
        with suppress(OSError, ValueError):
            while not is_over.wait(PACE / each_pace):
                if note(time.perf_counter() - begin) is False:
                    return

    noting = threading.Thread(target=repeat, name="notes of progress", daemon=True)
    noting.start()
    try:
        yield
    finally:
        is_over.set()
        noting.join()
