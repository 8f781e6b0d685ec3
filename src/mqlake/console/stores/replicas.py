"""Who copies a store's log: the slaves of its broker, and copies in directories of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from mqlake.admin.each_broker import BrokerFailure
from mqlake.console.cluster.view import ClusterView
from mqlake.console.stores.store_broker import OwnBroker
from mqlake.errors import MqlakeError, StoreError
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import LOCK_NAME
from mqlake.store.config.named_broker import named_broker
from mqlake.store.reader import StoreReader
from mqlake.store.snapshot import is_store

_AGE = 3.0


class CopyFacts(msgspec.Struct, frozen=True, rename="camel"):
    """A store directory of this machine, as a copy of a broker's store.

    Attributes:
        broker: whose copy it is; None if its settings do not say.
        start, end: physical offsets between which its log is.
        owner: process that has it open; None without one, 0 or less if unknown.
        problem: why it cannot be read; None if it can.
    """

    store: str
    broker: str | None = None
    start: int = 0
    end: int = 0
    owner: int | None = None
    problem: str | None = None


class SlavePositions(NamedTuple):
    """How far a broker's log is copied.

    Attributes:
        ha: the positions of the broker and its slaves; None if they are not known.
        problem: why they are not known; empty if they are.
    """

    ha: HaRuntimeInfo | None
    problem: str


def copy_facts(path: Path) -> CopyFacts:
    """Return how far the copy in a directory is."""
    try:
        if not is_store(LocalDirectory(path)):
            raise StoreError(f"{path}: this directory is not a store: it has no commitlog/")
        with StoreReader.open(LocalDirectory(path)) as reader:
            start, end = reader.min_offset, reader.max_offset
        directory = LocalOwnedDirectory(path)
        owner = directory.lock_holder(LOCK_NAME)
        return CopyFacts(str(path), named_broker(directory), start, end, owner)
    except (MqlakeError, OSError) as error:
        return CopyFacts(str(path), problem=str(error))


async def replication_of(cluster: ClusterView, broker: OwnBroker) -> SlavePositions:
    """Return how far the slaves of a broker are, or the slave that the broker is itself."""

    async def fetch() -> HaRuntimeInfo:
        code = RequestCode.GET_BROKER_HA_STATUS
        answer = await cluster.admin.ask(broker.address, code)
        return decode_answer(HaRuntimeInfo, answer.body)

    try:
        found = await cluster.kept.get(("ha", broker.address), _AGE, fetch)
    except MqlakeError as error:
        return SlavePositions(None, BrokerFailure(broker.name, error).missing("slaves are missing"))
    return SlavePositions(found, "")
