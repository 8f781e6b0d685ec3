"""Properties as a broker stores them: the producer's, and where the message came in."""

from __future__ import annotations

from mqlake.broker.send.unique_keys import UniqueKeys
from mqlake.broker.settings import BrokerSettings
from mqlake.formats.properties import (
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    UNIQ_KEY,
    decode_properties,
    encode_pairs,
)

_CLUSTER = "CLUSTER"
_REGION = "MSG_REGION"
_TRACE_ON = "TRACE_ON"
_POP_CHECK_POINT = "POP_CK"

_UNIQUE_KEY = f"{UNIQ_KEY}{NAME_VALUE_SEPARATOR}"
_LATER_KEY = PROPERTY_SEPARATOR + _UNIQUE_KEY


Stored = tuple[bytes, str]
"""What is stored, and the message's unique key."""


class StoredProperties:
    """Turns the properties that producers send into those that are stored.

    Added are the cluster, the region, whether the broker is traced, and a unique key where there is
    none; a receipt of pop consumption is dropped, since it is not the producer's to give.

    Attributes:
        own: what stands behind the producer's.
    """

    def __init__(self, settings: BrokerSettings, keys: UniqueKeys) -> None:
        self._keys = keys
        own = {
            _REGION: settings.region_id,
            _TRACE_ON: "true" if settings.trace_on else "false",
            _CLUSTER: settings.broker_cluster_name,
        }
        self.own = encode_pairs(own).decode()

    def of(self, text: str | None) -> Stored:
        """Return what is stored for the properties of a request."""
        if not text:
            return self._with_key("")
        if _POP_CHECK_POINT in text:
            pairs = decode_properties(text.encode())
            pairs.pop(_POP_CHECK_POINT, None)
            text = encode_pairs(pairs).decode()
        elif text[-1] != PROPERTY_SEPARATOR:
            text += PROPERTY_SEPARATOR
        start = text.rfind(_LATER_KEY)
        if start >= 0:
            start += len(_LATER_KEY)
        elif text.startswith(_UNIQUE_KEY):
            start = len(_UNIQUE_KEY)
        end = text.find(PROPERTY_SEPARATOR, start)
        if start < 0 or start == end:
            return self._with_key(text)
        # Of equal names readers take the last: the broker's, not the producer's.
        return (text + self.own).encode(), text[start:end]

    def _with_key(self, text: str) -> Stored:
        key = self._keys.next()
        return f"{text}{_UNIQUE_KEY}{key}{PROPERTY_SEPARATOR}{self.own}".encode(), key
