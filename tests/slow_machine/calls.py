"""The calls that a slow machine delays, replaced for the whole test run."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from asyncio import selector_events
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, Final
from unittest import mock

from mqlake.store import blocking, services
from mqlake.store.loop import dispatching, service_task
from tests.slow_machine.drawn import Delay
from tests.slow_machine.world import World

_SLEEP: Final = time.sleep
"""Tests replace it in its module."""


def replace_calls(delay: Delay, world: World) -> None:
    """Delay calls until the process ends."""
    _slow_syncs(delay, world)
    _slow_event_loop(delay, world)
    _slow_threads(delay, world)
    _slow_connections(delay)
    world.replace_sleeps()


def late_dispatch(seconds: float) -> list[Any]:
    """Return patches by which stores dispatch so much later, and check services so rarely."""
    names = [
        (dispatching, ("TICK", "LOADED_TICK")),
        (service_task, ("LOOK_INTERVAL",)),
        (blocking, ("TICK", "LOOK_INTERVAL")),
        (services, ("TICK", "LOADED_TICK", "LOOK_INTERVAL")),
    ]
    return [mock.patch.object(module, name, seconds) for module, each in names for name in each]


def _replace(owner: object, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _wait(seconds: float) -> None:
    if seconds:
        _SLEEP(seconds)


def _slow_syncs(delay: Delay, world: World) -> None:
    for name in ("fsync", "fdatasync"):
        _replace(os, name, _slow_sync(getattr(os, name), delay, world))


def _slow_sync(sync: Callable[[int], None], delay: Delay, world: World) -> Callable[[int], None]:
    def slow(fd: int) -> None:
        _wait(delay("sync"))
        world.wait()
        sync(fd)

    return slow


def _slow_event_loop(delay: Delay, world: World) -> None:
    """Pause real event loops between rounds: those of simulated time have no pauses.

    Brokers use asyncio's loop instead of uvloop's, whose rounds cannot be delayed.
    """
    with suppress(ImportError):
        import uvloop

        _replace(uvloop, "new_event_loop", asyncio.SelectorEventLoop)
    real: Any = asyncio.SelectorEventLoop
    original = real._run_once

    def run_once(loop: asyncio.SelectorEventLoop) -> None:
        if type(loop) is real:
            _wait(delay("event loop") + delay("stall"))
            world.wait()
        original(loop)

    real._run_once = run_once


def _slow_threads(delay: Delay, world: World) -> None:
    """Begin the work of threads and of executors late; their starters continue."""
    start, submit = Thread.start, ThreadPoolExecutor.submit

    def slow_start(thread: Thread) -> None:
        thread.run = _late(thread.run, delay("thread"), world)
        start(thread)

    def slow_submit(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **named: Any
    ) -> Future[Any]:
        return submit(pool, _late(function, delay("thread"), world), *args, **named)

    _replace(Thread, "start", slow_start)
    _replace(ThreadPoolExecutor, "submit", slow_submit)


def _late(function: Callable[..., Any], seconds: float, world: World) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        _wait(seconds)
        world.wait()
        return function(*args, **named)

    return run


def _slow_connections(delay: Delay) -> None:
    """Connect late; and accept late, which those who connected do not notice."""
    connect = socket.socket.connect
    event_loop: Any = selector_events.BaseSelectorEventLoop
    sock_connect, accept = event_loop.sock_connect, event_loop._accept_connection

    def slow_connect(sock: socket.socket, address: Any, /) -> None:
        # Those of event loops do not block, and are delayed below.
        if sock.gettimeout() != 0:
            _wait(delay("connect"))
        connect(sock, address)

    async def slow_sock_connect(loop: Any, sock: socket.socket, address: Any) -> None:
        if type(loop) is asyncio.SelectorEventLoop and (seconds := delay("connect")):
            await asyncio.sleep(seconds)
        await sock_connect(loop, sock, address)

    def slow_accept(loop: Any, *args: Any, **named: Any) -> None:
        if type(loop) is asyncio.SelectorEventLoop:
            _wait(delay("accept"))
        accept(loop, *args, **named)

    _replace(socket.socket, "connect", slow_connect)
    event_loop.sock_connect = slow_sock_connect
    event_loop._accept_connection = slow_accept
