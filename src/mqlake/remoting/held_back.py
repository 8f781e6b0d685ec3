"""Work whose results would only fill memory: it waits until its connection has read what was
written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from mqlake.remoting.connection import Peer

T = TypeVar("T")

_AT_ONCE: Final = 16
"""Items of one connection that are done in one round of the loop."""


class HeldBack(Generic[T]):
    """Items of connections that do not read, in their order.

    Args:
        do: called with an item once its connection can be written to. It raises nothing.
    """

    def __init__(self, do: Callable[[T], object]) -> None:
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._items: dict[Peer, deque[T]] = {}

    def add(self, peer: Peer, item: T) -> None:
        """Do an item once `peer` can be written to; never if it is closed before."""
        items = self._items.get(peer)
        if items is None:
            items = self._items[peer] = deque()
            peer.on_close(self._forget)
        items.append(item)
        if len(items) == 1:
            peer.when_writable(partial(self._go_on, peer))

    def _go_on(self, peer: Peer) -> None:
        items = self._items.get(peer)
        if not items:
            return
        for _ in range(min(_AT_ONCE, len(items))):
            if peer.is_choked:
                break
            self._do(items.popleft())
        if items and peer.is_choked:
            peer.when_writable(partial(self._go_on, peer))
        elif items:
            self._loop.call_soon(self._go_on, peer)

    def _forget(self, peer: Peer) -> None:
        self._items.pop(peer, None)
