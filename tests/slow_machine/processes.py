"""Pauses of the processes that a test started, whatever program they run."""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.slow_machine.drawn import Delay

_SLEEP: Final = time.sleep
_BETWEEN = 0.1
"""Seconds from one look at the processes to the next."""


def pause_processes(delay: Delay) -> None:
    """Stop and continue the processes below this one now and then, until this process ends.

    Its thread is unknown to `threading`, as tests count threads.
    """
    _thread.start_new_thread(_pause, (os.getpid(), delay))


def _pause(parent: int, delay: Delay) -> None:
    while True:
        _SLEEP(_BETWEEN)
        for process in list(descendants(parent)):
            if seconds := delay("process"):
                _stop(process, seconds)


def _stop(process: int, seconds: float) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGSTOP)
        try:
            _SLEEP(seconds)
        finally:
            os.kill(process, signal.SIGCONT)


def descendants(process: int) -> Iterator[int]:
    """Yield the processes below one, as far as they still exist."""
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))
