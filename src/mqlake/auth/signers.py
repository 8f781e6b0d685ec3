"""Which user has signed the last request of each connection."""

from __future__ import annotations

from mqlake.remoting.connection import Peer


class Signers:
    """The users of the open connections, by "host:port".

    Proxies may give the same address for several connections: then the user of the current, or
    last, request counts.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[Peer, str | None]] = {}

    def of(self, client: str) -> str | None:
        """Return the user of a connection; None if nobody has signed the request."""
        signed = self._of.get(client)
        return None if signed is None else signed[next(reversed(signed))]

    def user_of(self, peer: Peer) -> str | None:
        """Return who has signed the last request of a connection; None if nobody has, or if another
        connection has the same address.
        """
        signed = self._of.get(peer.address)
        return signed.get(peer) if signed is not None and len(signed) == 1 else None

    def note(self, peer: Peer, name: str | None) -> None:
        """Note who has signed a request, None if nobody has.

        A request that nobody has signed must not count for a user of another connection with this
        address.
        """
        if peer.is_closed or (name is None and peer.address not in self._of):
            return
        signed = self._of.setdefault(peer.address, {})
        if peer in signed:
            del signed[peer]
        else:
            peer.on_close(self._forget)
        signed[peer] = name

    def _forget(self, closed: Peer) -> None:
        signed = self._of[closed.address]
        del signed[closed]
        if not signed:
            del self._of[closed.address]
