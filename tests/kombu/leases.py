"""Times of redelivery that only the broker's clock ends, whatever the machine does meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mqlake.client.consumer.simple_consumer import SimpleConsumer

FACTOR = 200
"""Clients that extend a message every second give the broker a time of minutes."""


@contextmanager
def long_leases() -> Iterator[Counter[str]]:
    """Let the broker wait `FACTOR` times as long before it redelivers a popped message.

    Clients extend as often as before. Tests advance the broker's clock after an extension.

    Yields:
        The number of extensions of each message, by its id.
    """
    extended: Counter[str] = Counter()
    begin, change = SimpleConsumer.__init__, SimpleConsumer.change_invisible

    def longer(self: Any, *arguments: Any, invisible: float = 60.0, **named: Any) -> None:
        begin(self, *arguments, invisible=FACTOR * invisible, **named)

    async def change_longer(self: Any, message: Any, seconds: float) -> None:
        await change(self, message, FACTOR * seconds)
        if seconds:
            extended[message.message_id] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimpleConsumer, "__init__", longer)
        patch.setattr(SimpleConsumer, "change_invisible", change_longer)
        yield extended
