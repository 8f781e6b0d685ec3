"""Wait for a condition, with a patience that no slow machine exhausts."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = 200.0
"""Seconds to wait for anything: kernels may have to be compiled."""

_LOOK_INTERVAL = 0.01


async def until(holds: Callable[[], Any | Awaitable[Any]], patience: float = PATIENCE) -> None:
    """Return once a condition holds; it may be a coroutine function.

    Raises:
        TimeoutError: it never did.
    """
    async with asyncio.timeout(patience):
        while not await _value(holds()):  # noqa: ASYNC110 (a condition of any kind has no event)
            await asyncio.sleep(_LOOK_INTERVAL)


async def _value(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found


async def rounds(count: int = 50) -> None:
    """Let the event loop do what is ready now, and what follows from that, without any wait."""
    for _ in range(count):
        await asyncio.sleep(0)


def wait_until(
    holds: Callable[[], Any], patience: float = PATIENCE, *, why: Callable[[], object] = str
) -> None:
    """Block until a condition holds.

    Args:
        why: returns what explains a wait in vain, such as the log of a process.

    Raises:
        AssertionError: it never did.
    """
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {why()}"
        time.sleep(_LOOK_INTERVAL)
