"""Frames of sends: what all sends to one topic have in common is encoded once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from mqlake.client.producer.outgoing import Outgoing
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.template import FrameTemplate, frame_template

_GAPS = {"e": "%d", "f": "%d", "g": "%d", "h": "%d", "i": "%s"}
"""Fields of `SendMessageHeaderV2` that differ from send to send, in the order of `frame`."""
_MAX_TEMPLATES = 1024

_escape = msgspec.json.Encoder().encode


class SendFrames:
    """Encodes the frames of one producer group."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._templates: dict[tuple[str, RequestCode], FrameTemplate] = {}

    def frame(self, outgoing: Outgoing, queue: MessageQueue, opaque: int) -> bytes:
        """Return the frame that stores messages in a queue."""
        key = outgoing.topic, outgoing.code
        template = self._templates.get(key) or self._template(key, outgoing, queue)
        properties = _escape(outgoing.properties)[1:-1].decode()
        head = template.fill(
            queue.queue_id,
            outgoing.sys_flag,
            outgoing.born_timestamp,
            outgoing.flag,
            properties,
            opaque,
            body=len(outgoing.body),
        )
        return head + outgoing.body

    def _template(
        self, key: tuple[str, RequestCode], outgoing: Outgoing, queue: MessageQueue
    ) -> FrameTemplate:
        command = outgoing.command(self._group, queue)
        same = {name: text for name, text in command.fields.items() if name not in _GAPS}
        if len(self._templates) >= _MAX_TEMPLATES:
            self._templates.clear()
        command.known_fields = same
        self._templates[key] = template = frame_template(command, _GAPS)
        return template


class SendRequest(NamedTuple):
    """The request that stores messages in a queue."""

    frames: SendFrames
    outgoing: Outgoing
    queue: MessageQueue

    @property
    def code(self) -> int:
        """Return the request code."""
        return self.outgoing.code

    def frame(self, opaque: int) -> bytes:
        """Return the frame under a number."""
        return self.frames.frame(self.outgoing, self.queue, opaque)
