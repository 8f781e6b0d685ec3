"""Which user has signed the last request of each connection."""

from __future__ import annotations

from mqlake.remoting.connection import Peer


class Signers:
    """The users of the open connections, by "host:port"."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def of(self, client: str) -> str | None:
        """Return the user of a connection; None if nobody has signed a request."""
        return self._of.get(client)

    def note(self, peer: Peer, name: str) -> None:
        """Note who has signed a request."""
        if peer.is_closed:
            return
        if peer.address not in self._of:
            peer.on_close(lambda closed: self._of.pop(closed.address, None))
        self._of[peer.address] = name
