"""Observations: for each setting that takes effect at once, what is seen of a change.

An observation gets a broker that was started with its `start` settings, changes the setting
through the wire, and fails if nothing comes of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mqlake.protocol.codes import RequestCode
from tests import until as waiting
from tests.broker.admin.asking import done
from tests.broker.running import PATIENCE, Running

DAY = 24 * 60 * 60 * 1000
NEVER: dict[str, object] = {
    "flushIntervalCommitLog": DAY,
    "flushIntervalConsumeQueue": DAY,
    "cleanResourceInterval": DAY,
}
"""Settings with which a store does little by itself."""


class Observation(NamedTuple):
    """How a change of one setting is observed."""

    start: dict[str, object]
    look: Callable[[Running], Awaitable[None]]


OBSERVATIONS: dict[str, Observation] = {}
"""By the name of the setting."""


def observes(
    name: str, **start: object
) -> Callable[[Callable[[Running], Awaitable[None]]], Callable[[Running], Awaitable[None]]]:
    """Register a function as the observation of a setting.

    Args:
        start: settings that the broker starts with.
    """

    def register(
        look: Callable[[Running], Awaitable[None]],
    ) -> Callable[[Running], Awaitable[None]]:
        assert name not in OBSERVATIONS
        OBSERVATIONS[name] = Observation(start, look)
        return look

    return register


async def change(broker: Running, **values: object) -> None:
    """Change settings through the wire."""
    body = "".join(f"{name}={value}\n" for name, value in values.items())
    await done(broker, RequestCode.UPDATE_BROKER_CONFIG, body=body.encode())


class Patience:
    """How long an effect is waited for."""

    seconds = PATIENCE


async def until(is_so: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until something is so."""
    await waiting.until(is_so, Patience.seconds)


async def soon(awaited: Awaitable[object]) -> None:
    """Wait until something is done."""
    async with asyncio.timeout(Patience.seconds):
        await awaited
