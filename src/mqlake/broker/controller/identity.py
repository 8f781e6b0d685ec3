"""Which broker of its name this store is: the id that the controller has given it.

Upstream: `ReplicasManager.register`, `BrokerMetadata`, `TempBrokerMetadata`.
"""

from __future__ import annotations

import logging

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.controllers import Controllers
from mqlake.errors import FormatError, StoreError
from mqlake.formats import broker_identity
from mqlake.formats.broker_identity import LARGEST, NAME, TEMPORARY_NAME, BrokerIdentity
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.storage.durable import replace_file
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file

_log = logging.getLogger(__name__)


class Identity:
    """The files that contain a broker's id, and how a broker gets one."""

    def __init__(self, directory: OwnedDirectory, settings: BrokerSettings) -> None:
        self._directory, self._settings = directory, settings

    def known(self) -> int | None:
        """Return the id that this store has; None if it has none yet.

        Raises:
            StoreError: the file is damaged, or of another broker name.
        """
        found = self._read(NAME)
        return found.broker_id if found else None

    async def obtain(self, controllers: Controllers, milliseconds: int) -> int:
        """Return the id of this store, applied for if it has none.

        Raises:
            MqlakeError: the controller does not answer, or refuses; or the disk does.
        """
        if (known := self.known()) is not None:
            return known
        asked = self._read(TEMPORARY_NAME)
        if asked is None or not asked.check_code:
            now = self._settings
            asked = BrokerIdentity(
                now.broker_cluster_name,
                now.broker_name,
                await controllers.next_broker_id(),
                f"{now.broker_address};{milliseconds}",
            )
            replace_file(self._directory, TEMPORARY_NAME, broker_identity.encode(asked))
        try:
            await controllers.apply_for(asked.broker_id, asked.check_code)
        except RemotingError as error:
            if error.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                self._forget_application()  # another broker was faster
            raise
        kept = broker_identity.encode(asked._replace(check_code=""))
        replace_file(self._directory, NAME, kept)
        self._forget_application()
        _log.info("this broker has the id %d at the controller", asked.broker_id)
        return asked.broker_id

    def _forget_application(self) -> None:
        self._directory.remove(TEMPORARY_NAME)

    def _read(self, name: str) -> BrokerIdentity | None:
        where, settings = self._directory.describe(name), self._settings
        data = read_file(self._directory, name, LARGEST)
        if not data:
            return None
        try:
            found = broker_identity.decode(data)
        except FormatError as error:
            raise StoreError(f"{where}: {error}; put back a copy, or remove it") from None
        if (found.cluster, found.name) != (settings.broker_cluster_name, settings.broker_name):
            raise StoreError(
                f"{where}: this store belongs to broker {found.name} of cluster {found.cluster},"
                f" but the settings name {settings.broker_name} of {settings.broker_cluster_name}:"
                " correct brokerName and brokerClusterName, or use another store"
            )
        return found
