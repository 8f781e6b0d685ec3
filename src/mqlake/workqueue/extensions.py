"""Keep messages from being redelivered while their tasks run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NoReturn

from mqlake.workqueue.deliveries import Delivery

_AT_ONCE = 16
"""Maximum number of messages that are extended at the same time."""


async def keep_extended(held: Callable[[], Iterable[Delivery]], seconds: float) -> NoReturn:
    """Extend all held messages, long before they would be redelivered, until cancelled.

    Args:
        held: returns the unfinished messages.
        seconds: after which a message is redelivered.
    """
    turns = asyncio.Semaphore(_AT_ONCE)

    async def extend(delivery: Delivery) -> None:
        async with turns:
            await delivery.extend(seconds)

    while True:
        await asyncio.sleep(seconds / 12)
        old = [each for each in held() if each.age() >= seconds / 3 and not each.is_lost]
        await asyncio.gather(*map(extend, old))
