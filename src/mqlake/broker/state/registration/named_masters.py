"""The master of a slave, as each name server has named it."""

from __future__ import annotations

from collections.abc import Iterable

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.headers.namesrv import RegisterBrokerResponseHeader
from mqlake.replication.replicas import Replicas
from mqlake.store.live_settings import Current


class NamedMasters:
    """Notes the answers to a slave's registrations; the first one with a master counts."""

    def __init__(
        self, settings: Current[BrokerSettings], replicas: Replicas, name_servers: Iterable[str]
    ) -> None:
        self._settings, self._replicas = settings, replicas
        self._order = list(name_servers)
        self._answers: dict[str, RegisterBrokerResponseHeader] = {}

    def note(self, name_server: str, answer: RegisterBrokerResponseHeader) -> None:
        """Note a name server's answer."""
        self._answers[name_server] = answer
        self._choose()

    def failed(self, name_server: str) -> None:
        """Forget a name server's answer, because it does not answer now, if another one does.

        Otherwise a slave that may act would copy from a master that only this one knew.
        """
        others = self._answers.keys() - {name_server}
        if self._settings.now.has_acting_master and others:
            self._answers.pop(name_server, None)
            self._choose()

    def _choose(self) -> None:
        known = [self._answers[each] for each in self._order if each in self._answers]
        best = next((each for each in known if each.master_addr), RegisterBrokerResponseHeader())
        self._replicas.found_master(best.master_addr or "", best.ha_server_addr or "")
