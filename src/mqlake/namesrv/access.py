"""Who may make which request of a name server. RocketMQ's has no such check."""

from __future__ import annotations

from pathlib import Path

from mqlake.auth.access import Access
from mqlake.auth.authorization import Scope
from mqlake.auth.rules import ALL_CLUSTERS, NAME_SERVER
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.storage.local_owned import LocalOwnedDirectory


def open_access(settings: NamesrvSettings) -> Access:
    """Return the checks of a name server, with the users in its directory.

    Raises:
        StoreError: the file with the users cannot be read or written, or there are no users.
    """
    path = Path(settings.auth_config_path).expanduser()
    is_used = settings.authentication_enabled
    directory = LocalOwnedDirectory.make(path) if is_used else LocalOwnedDirectory(path)
    return Access(settings, directory, Scope(NAME_SERVER, ALL_CLUSTERS, _topic_at))


def _topic_at(_offset: int) -> None:
    """Return no topic: a name server has no messages."""
