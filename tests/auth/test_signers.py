"""Users of connections, of which several may have the same address behind proxies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlake.auth.signers import Signers


class Connection:
    """What `Signers` needs of a connection."""

    def __init__(self, address: str) -> None:
        self.address, self.is_closed = address, False
        self._callbacks: list[Callable[[Any], None]] = []

    def on_close(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def close(self) -> None:
        self.is_closed = True
        for callback in self._callbacks:
            callback(self)


def test_connections_of_one_address_do_not_lose_each_others_users() -> None:
    signers, place = Signers(), "10.0.0.1:5"
    one, other, alone = Connection(place), Connection(place), Connection("10.0.0.2:5")

    def note(peer: Any, name: str) -> str | None:
        signers.note(peer, name)
        return signers.of(peer.address)

    assert signers.of(place) is None
    assert [note(one, "anna"), note(other, "bob"), note(alone, "carl")] == ["anna", "bob", "carl"]
    assert [note(one, "anna"), note(other, "bob")] == ["anna", "bob"]
    one.close()
    assert signers.of(place) == "bob"
    assert note(one, "anna") == "bob"  # A request that was served after its connection had closed.
    other.close()
    assert signers.of(place) is None
    assert signers.of(alone.address) == "carl"


def test_the_user_of_a_connection_is_not_another_ones_with_its_address() -> None:
    signers = Signers()
    one: Any = Connection("10.0.0.1:5")
    other: Any = Connection("10.0.0.1:5")
    assert signers.user_of(one) is None
    signers.note(one, "anna")
    assert (signers.user_of(one), signers.user_of(other)) == ("anna", None)
    signers.note(one, None)
    assert signers.user_of(one) is None
    signers.note(one, "anna")
    signers.note(other, "bob")
    assert (signers.user_of(one), signers.user_of(other)) == (None, None)
    other.close()
    assert signers.user_of(one) == "anna"


def test_a_request_without_a_signature_counts_to_nobody() -> None:
    signers, place = Signers(), "10.0.0.1:5"
    one, other = Connection(place), Connection(place)

    def note(peer: Any, name: str | None) -> str | None:
        signers.note(peer, name)
        return signers.of(place)

    notes = [note(other, None), note(one, "anna"), note(other, None), note(one, "anna")]
    assert notes == [None, "anna", None, "anna"]
    one.close()
    assert signers.of(place) is None
    assert note(other, "bob") == "bob"
