"""Processes that begin with mqlake imported and its kernels loaded, which takes seconds each.

They are forked by a process that has done so once: the server of `multiprocessing`, which has one
thread. Their environment is that of the first fork, however it is changed later.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.programs.processes import BrokerProcess

_LOADED = "tests.programs.loaded"
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([_LOADED])


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


def log_to(log: Path) -> None:
    """Let this process, which was forked, log to a file."""
    # The server says nothing if that fails, and everything is loaded once more in each process.
    assert _LOADED in sys.modules, f"{_LOADED} was not loaded before the fork"
    with log.open("a") as output:
        os.dup2(output.fileno(), sys.stderr.fileno())


class ForkedBroker(BrokerProcess):
    """A broker that is forked; it takes no `patch`."""

    process: Forked

    def start(self) -> None:
        assert "-m" in self._command
        self.process = self.fork(self._command[self._command.index("broker") :])
        self._wait(self._port)

    def fork(self, words: list[str]) -> Forked:
        """Start `mqlake` with these arguments."""
        return Forked(be_broker, words, self.log)


def be_broker(words: list[str], log: Path) -> None:
    """Be `mqlake` with these arguments."""
    from mqlake.cli.app import main

    log_to(log)
    sys.argv = ["mqlake", *words]
    main()
