"""Read from a message whether it must be on slaves before it is acknowledged (property `WAIT`)."""

from __future__ import annotations

import msgspec

from mqlake.formats.properties import NAME_VALUE_SEPARATOR, WAIT, decode_properties
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutResult

_WAITS = f"{WAIT}{NAME_VALUE_SEPARATOR}true".encode()
_ASKS = f"{WAIT}{NAME_VALUE_SEPARATOR}".encode()


def waiting_if_asked(result: PutResult, message: Message | MessageBatch) -> PutResult:
    """Return a result with whether its message must be on slaves before it is acknowledged."""
    if (data := message.encoded_properties) is not None:
        if _WAITS in data or _ASKS not in data:
            return result
        asked = decode_properties(data).get(WAIT)
    elif isinstance(message, Message) and message.properties:
        asked = message.properties.get(WAIT)
    else:
        return result
    if not asked or asked.lower() == "true":
        return result
    return msgspec.structs.replace(result, waits_for_slaves=False)
