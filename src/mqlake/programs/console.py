"""The console of a broker: a process of its own, so that pages cost the broker no time.

The broker gives it the options on stdin, and it ends when stdin does: also if the broker is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec

from mqlake.errors import MqlakeError

if TYPE_CHECKING:
    from mqlake.console.options import ConsoleOptions

_STDIN: Final = 0
_PAUSE: Final = 10.0
"""Seconds before a console that has ended is started again."""
_GRACE: Final = 8.0
"""Seconds within which it must end when the broker stops."""

_log: Final = logging.getLogger(__name__)


def check_console_installed() -> None:
    """Check that the packages of the console are installed.

    Raises:
        MqlakeError: one is missing.
    """
    for package in ("jinja2", "starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MqlakeError(
                f"consolePort: {package} is not installed: pip install 'mqlake[console]'"
            )


class ConsoleProcess:
    """A console in another process. `async with` runs it; it is started again if it ends."""

    def __init__(self, options: ConsoleOptions) -> None:
        self._text = msgspec.json.encode(options, enc_hook=str) + b"\n"
        self._process: Process | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_GRACE):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _run(self) -> None:
        while True:
            try:
                code = await self._once()
                _log.error("the console ended with code %d: it starts again soon", code)
            except OSError as error:
                _log.error("the console cannot be started: %s", error)
            await asyncio.sleep(_PAUSE)

    async def _once(self) -> int:
        """Run the process until it ends; return its exit code."""
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=PIPE)
        self._process = process
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(self._text)
            await process.stdin.drain()
        return await process.wait()


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (part := os.read(_STDIN, 1)):
        line += part
    return line


def _end_with_stdin() -> None:
    """End this process once the broker is gone."""
    while os.read(_STDIN, 1024):  # A thread that waits in a buffered read would break the exit.
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _path(kind: type, text: str) -> Path:
    """Return a path of the options, which JSON contains as a text."""
    assert kind is Path
    return Path(text)


def main() -> None:
    """Serve the console that stdin describes."""
    from mqlake.console.options import ConsoleOptions
    from mqlake.console.server import ConsoleServer
    from mqlake.programs.serve import serve

    options = msgspec.json.decode(_first_line(), type=ConsoleOptions, dec_hook=_path)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        serve(lambda: ConsoleServer(options))
    except MqlakeError as error:
        sys.stderr.write(f"mqlake console: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
