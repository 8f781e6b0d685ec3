"""Sleeps of tests during which nothing else happens.

A test that sleeps so that something has happened afterwards fails: on a slow machine, time passes
and the work is still to be done.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.slow_machine.processes import descendants

_SLEEP: Final = time.sleep
_TESTS: Final = str(Path(__file__).parents[1])
_WAITING = ("until.py", "slow_machine", "simulation")
"""Files and folders below the tests whose sleeps are left alone: they look again and again."""

_LONGEST = 1.0
"""Seconds; who sleeps for longer waits for something that takes that time."""

_MOST_AT_ONE_PLACE = 3
"""Calls in one test, after which a place is one that looks again and again."""


class World:
    """What stands still while a test sleeps.

    Attributes:
        is_frozen_by_sleeps: whether the current test is one of those.
    """

    def __init__(self) -> None:
        self.is_frozen_by_sleeps = False
        self._until = 0.0
        self._calls: Counter[tuple[str, int]] = Counter()

    def begin(self, *, is_frozen_by_sleeps: bool) -> None:
        """Begin a test."""
        self.is_frozen_by_sleeps = is_frozen_by_sleeps
        self._calls.clear()

    def wait(self) -> None:
        """Wait until the world moves again: event loops and threads call it before they work."""
        if (left := self._until - time.monotonic()) > 0:
            _SLEEP(left)

    def replace_sleeps(self) -> None:
        """Replace the functions that sleep."""
        sleep = asyncio.sleep

        def in_loop(delay: float, result: Any = None) -> Coroutine[Any, Any, Any]:
            if self._is_frozen_by(delay):
                return self._sleep_in_loop(sleep, delay, result)
            return sleep(delay, result)

        def in_thread(seconds: float, /) -> None:
            if self._is_frozen_by(seconds):
                self._freeze(seconds)
            else:
                _SLEEP(seconds)

        for module in (asyncio, asyncio.tasks):
            setattr(module, "sleep", in_loop)  # noqa: B010
        setattr(time, "sleep", in_thread)  # noqa: B010

    def _is_frozen_by(self, seconds: float) -> bool:
        if not self.is_frozen_by_sleeps or not 0 < seconds <= _LONGEST:
            return False
        caller = sys._getframe(2)
        file = caller.f_code.co_filename
        if not file.startswith(_TESTS) or any(each in file for each in _WAITING):
            return False
        place = file, caller.f_lineno
        self._calls[place] += 1
        return self._calls[place] <= _MOST_AT_ONE_PLACE

    async def _sleep_in_loop(self, sleep: Any, seconds: float, result: Any) -> Any:
        """Let the loop work for one round afterwards."""
        self._freeze(seconds)
        return await sleep(0, result)

    def _freeze(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        stopped = list(descendants(os.getpid()))
        for process in stopped:
            with suppress(OSError):
                os.kill(process, signal.SIGSTOP)
        try:
            _SLEEP(seconds)
        finally:
            for process in stopped:
                with suppress(OSError):
                    os.kill(process, signal.SIGCONT)
