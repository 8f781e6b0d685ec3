"""A request that was changed on its way to its route, and whose answer is changed back."""

from __future__ import annotations

from collections.abc import Callable

from mqlake.protocol.command import Command


class Rewritten(Command, kw_only=True):
    """A request that a route receives instead of the one that arrived.

    Attributes:
        restore: returns the answer to the request that arrived, for the answer to this one. Called
            once, with each answer that the route sends later (`Peer.answer`); never raises.
    """

    restore: Callable[[Command | bytes], Command | bytes]

    def bare(self) -> Rewritten:
        """Return only the part of this request that is needed to answer it."""
        return Rewritten(
            self.code,
            self.opaque,
            self.flag,
            serialization=self.serialization,
            restore=self.restore,
        )
