"""Run a function in a forked child."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable

_PATIENCE = 60.0


def in_child(function: Callable[[], object]) -> str:
    """Return what a function returns, or the error that it raises, in a forked child, as text.

    Raises:
        AssertionError: the child is still at it after a minute.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(function())
        except BaseException as error:  # noqa: BLE001
            answer = "".join(traceback.format_exception_only(error))
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], _PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
        assert ready, "the child hangs"
        return os.read(reading, 1 << 16).decode()
    finally:
        os.close(reading)
        os.waitpid(child, 0)
