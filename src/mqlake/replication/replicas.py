"""What a broker knows about the others of its name: its master, or its slaves."""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Replicas:
    """The master of a slave, and the transfer of the log.

    Args:
        listens_at: returns the address for this broker's slaves: "host:port"; "" while nobody
            listens. By default, no address is published.

    Attributes:
        master_address: the address at which a slave's master serves clients; "" while no name
            server knows it.
        master_ha_address: the address from which the master sends its log; the last known one.
        master_answers: whether the master answered the last request.
        is_acting: whether this slave acts for its master, which is gone.
        has_acted: whether it did so until a moment ago: clients may still take it for the master.
        on_change: called when one of these addresses has changed.
    """

    def __init__(self, listens_at: Callable[[], str] = lambda: "") -> None:
        self._listens_at = listens_at
        self.master_address: str = ""
        self.master_ha_address: str = ""
        self._listens_there = ""
        self.master_answers = self.is_acting = self.has_acted = False
        self.on_change: list[Callable[[], object]] = []

    def begin_to_act(self) -> None:
        """Note that this slave acts for its master."""
        self.is_acting, self.has_acted = True, False

    def end_acting(self) -> None:
        """Note that this slave does not act any more; clients may still take it for the master."""
        self.is_acting, self.has_acted = False, True

    def was_replaced(self) -> None:
        """Note that clients have found the master since this slave ended to act for it."""
        self.has_acted = False

    def note_master(self, *, answers: bool) -> None:
        """Note whether the master has answered."""
        self.master_answers = answers

    @property
    def ha_address(self) -> str:
        """The address for this broker's slaves: "host:port"; "" while nobody listens."""
        return self._listens_at()

    def may_be_master(self, address: str | None, ha_address: str | None) -> bool:
        """Return whether addresses are on the hosts of the last known master, if one is known."""
        pairs = (address, self._listens_there), (ha_address, self.master_ha_address)
        return all(_host(each) == _host(known) for each, known in pairs if each and known)

    def found_master(self, address: str, ha_address: str) -> None:
        """Note what name servers answer about this slave's master; "" for what they do not know."""
        if ha_address:
            self._listens_there = address
        elif address in ("", self._listens_there):
            ha_address = (
                self.master_ha_address
            )  # This does not apply to another master, which has another log.
        if (address, ha_address) == (self.master_address, self.master_ha_address):
            return
        if address != self.master_address:
            _log.info("the master is %s", address or "not registered")
        self.master_address, self.master_ha_address = address, ha_address
        for function in self.on_change:
            function()


def _host(address: str) -> str:
    return address.rpartition(":")[0]
