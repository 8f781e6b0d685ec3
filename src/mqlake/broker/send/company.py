"""Decide which sends are put at once, and which together with those of other connections."""

from __future__ import annotations

import asyncio

from mqlake.remoting.connection import Peer


class Company:
    """Whether several connections send in the same round of the loop.

    One call that puts the sends of many connections costs less than a call for each of them. A
    producer that is alone gets its answer sooner if its send is put at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._first: Peer | None = None
        self._has_others = self._had_others = False

    def has(self, peer: Peer) -> bool:
        """Note a send; return whether it is to be put together with others."""
        if self._first is None:
            self._first = peer
            self._loop.call_soon(self._end_round)
        elif peer is not self._first:
            self._has_others = True
        return self._had_others or self._has_others

    def _end_round(self) -> None:
        self._first = None
        self._had_others, self._has_others = self._has_others, False
