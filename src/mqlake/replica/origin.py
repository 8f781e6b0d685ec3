"""Whose copy a store is: the `brokerName` in its own settings.

Readers of several stores fill the column `brokerName` from it.
"""

from __future__ import annotations

from mqlake.errors import StoreError
from mqlake.replication.settings import ReplicationSettings
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.config.named_broker import named_broker
from mqlake.store.config.properties_file import PropertiesFile


def note_origin(directory: OwnedDirectory, name: str) -> None:
    """Note in a store whose copy it is.

    Raises:
        StoreError: it is another broker's, or the disk refused it.
    """
    known = named_broker(directory)
    if known == name:
        return
    if known:
        raise StoreError(
            f"{directory.describe()}: this is the store of {known}, not of {name}: give another"
            " --store"
        )
    PropertiesFile.of_store(directory).change(ReplicationSettings, {"brokerName": name})
