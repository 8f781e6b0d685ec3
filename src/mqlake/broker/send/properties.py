"""Properties as a broker stores them: the producer's, and where the message came in."""

from __future__ import annotations

from typing import NamedTuple

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

_UNIQUE_KEY = f"{PROPERTY_SEPARATOR}{UNIQ_KEY}{NAME_VALUE_SEPARATOR}"


class Stored(NamedTuple):
    """What is stored, and the message's unique key."""

    properties: bytes
    unique_key: str


class StoredProperties:
    """Turns the properties that producers send into those that are stored.

    Added are the cluster, the region, whether the broker is traced, and a unique key where there is
    none; a receipt of pop consumption is dropped, since it is not the producer's to give.
    """

    def __init__(self, settings: BrokerSettings, keys: UniqueKeys) -> None:
        self._keys = keys
        self._own = {
            _REGION: settings.region_id,
            _TRACE_ON: "true" if settings.trace_on else "false",
            _CLUSTER: settings.broker_cluster_name,
        }
        self._own_text = encode_pairs(self._own).decode()

    def of(self, text: str | None) -> Stored:
        """Return what is stored for the properties of a request.

        Raises:
            UnicodeEncodeError: they hold half a surrogate pair.
        """
        if not text:
            key = self._keys.next()
            return self._with_key(self._own_text, key)
        if _REGION in text or _TRACE_ON in text or _CLUSTER in text or _POP_CHECK_POINT in text:
            return self._rewritten(text)
        if text[-1] != PROPERTY_SEPARATOR:
            text += PROPERTY_SEPARATOR
        text = self._own_text + text
        start = text.rfind(_UNIQUE_KEY) + len(_UNIQUE_KEY)
        end = text.find(PROPERTY_SEPARATOR, start)
        if start < len(_UNIQUE_KEY) or start == end:
            return self._with_key(text, self._keys.next())
        return Stored(text.encode(), text[start:end])

    def _rewritten(self, text: str) -> Stored:
        pairs = decode_properties(text.encode()) | self._own
        pairs.pop(_POP_CHECK_POINT, None)
        key = pairs[UNIQ_KEY] = pairs.get(UNIQ_KEY) or self._keys.next()
        return Stored(encode_pairs(pairs), key)

    def _with_key(self, text: str, key: str) -> Stored:
        return Stored(f"{text}{_UNIQUE_KEY[1:]}{key}{PROPERTY_SEPARATOR}".encode(), key)
