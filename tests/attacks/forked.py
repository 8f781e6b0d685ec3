"""Processes that begin with mqlake imported and its kernels loaded, which takes seconds each.

They are forked by a process that has done so once: the server of `multiprocessing`, which has one
thread.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.attacks.loaded"])


class Forked:
    """A function that runs in such a process; it has the methods of `subprocess.Popen`.

    Args:
        run: a function at the top of a module.
        arguments: what it is called with; they are pickled.
    """

    def __init__(self, run: Callable[..., None], *arguments: object) -> None:
        self._process = _CONTEXT.Process(target=run, args=arguments, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code.

        Raises:
            TimeoutExpired: it still runs after so many seconds.
        """
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(str(self._process.name), timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()


pipe = _CONTEXT.Pipe
"""Return the two ends of a connection to such a process."""
