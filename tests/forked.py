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
        # Not select.select: that takes no descriptor above 1,023.
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        is_ready = bool(poll.poll(_PATIENCE * 1000))
        if not is_ready:
            os.kill(child, signal.SIGKILL)
        assert is_ready, "the child hangs"
        return os.read(reading, 1 << 16).decode()
    finally:
        os.close(reading)
        os.waitpid(child, 0)
