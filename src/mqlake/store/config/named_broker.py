"""The name of the broker in a store's own settings.

A replica notes there whose copy it is.
"""

from __future__ import annotations

from mqlake.storage.protocol import Directory
from mqlake.storage.read_file import read_file
from mqlake.store.config.properties_file import PATH
from mqlake.store.settings import parse_properties

_MOST = 1 << 20


def named_broker(directory: Directory) -> str | None:
    """Return `brokerName` of a store's settings; None if they name none, or there are no settings.

    Raises:
        StoreError: the settings cannot be read.
    """
    text = (read_file(directory, PATH, _MOST) or b"").decode("utf-8", "replace")
    return parse_properties(text).get("brokerName", "").strip() or None
