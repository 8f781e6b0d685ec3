"""The request that stores messages of a client: its frame is written without a detour."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.binary_fields import START, pair
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import VERSION, Serialization
from mqlake.protocol.frames import LENGTHS
from mqlake.protocol.naming import AUTO_CREATE_TOPIC
from mqlake.proxy.sending.outgoing_properties import Prepared

_OTHER_LANGUAGE: Final = 7
_SIZE: Final = Struct(">i")
_TOPICS: Final = 1024
"""Topics whose fields are kept as they are written."""
_QUEUE, _FLAGS, _BORN, _PROPERTIES = (b"\0\1" + letter for letter in (b"e", b"f", b"g", b"i"))
_USER_FLAG: Final = pair("h", "0")
_LAST: Final = pair("j", "0") + pair("k", "false")
_BATCH: Final = pair("m", "true")


class SendCommand(NamedTuple):
    """SEND_MESSAGE_V2, or SEND_BATCH_MESSAGE for several messages.

    Attributes:
        sent: the messages.
    """

    topic: str
    queue_id: int
    sent: tuple[Prepared, ...]

    @property
    def code(self) -> int:
        """The request code."""
        single, batch = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
        return int(single if len(self.sent) == 1 else batch)

    def frame(self, opaque: int) -> bytes:
        """Return the frame under a number."""
        first = self.sent[0]
        fields = [
            _of_topic(self.topic),
            _field(_QUEUE, b"%d" % self.queue_id),
            _field(_FLAGS, b"%d" % first.sys_flag),
            _field(_BORN, b"%d" % first.born),
            _USER_FLAG,
            _field(_PROPERTIES, first.properties.encode("utf-8", "replace")),
            _LAST,
        ]
        if len(self.sent) == 1:
            body = first.body
        else:
            fields.append(_BATCH)
            body = encode_batch((0, each.body, each.properties.encode()) for each in self.sent)
        header = b"".join(fields)
        start = START.pack(self.code, _OTHER_LANGUAGE, VERSION, opaque, 0, 0)
        size = len(start) + _SIZE.size + len(header)
        lengths = LENGTHS.pack(4 + size + len(body), Serialization.ROCKETMQ << 24 | size)
        return b"".join((lengths, start, _SIZE.pack(len(header)), header, body))


def _field(name: bytes, value: bytes) -> bytes:
    return name + len(value).to_bytes(4) + value


@lru_cache(_TOPICS)
def _of_topic(topic: str) -> bytes:
    """Return the fields that all sends to a topic have in common."""
    fields = {"a": topic, "b": topic, "c": AUTO_CREATE_TOPIC, "d": "4"}
    return b"".join(pair(name, value) for name, value in fields.items())
