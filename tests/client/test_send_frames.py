"""Frames of sends are those that the encoder of commands makes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mqlake.client.message import Message, MessageQueue
from mqlake.client.producer.outgoing import Outgoing, Outgoings
from mqlake.client.producer.send_frames import SendFrames
from mqlake.protocol.frames import LENGTHS, encode
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.unique_keys import UniqueKeys
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from mqlake.storage.clock import SystemClock

TEXTS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x01\x02"), min_size=1
)


KEYS = UniqueKeys("10.0.0.1:0", SystemClock())


def outgoing_of(message: Message, sys_flag: int = 0) -> Outgoing:
    return Outgoings(KEYS, lambda: 17, None, 1 << 20).single(message, sys_flag=sys_flag)


@given(topic=TEXTS, group=TEXTS, properties=st.dictionaries(TEXTS, TEXTS), body=st.binary())
def test_a_frame_has_what_the_encoder_of_commands_writes(
    topic: str, group: str, properties: dict[str, str], body: bytes
) -> None:
    frames = SendFrames(group)
    for number in range(3):
        message = Message(topic=topic, body=body, properties=properties, flag=-number)
        outgoing, queue = outgoing_of(message, number), MessageQueue(topic, "b", number)
        command = outgoing.command(group, queue)
        command.opaque = 1_234_567_890 + number
        made, wanted = frames.frame(outgoing, queue, command.opaque), encode(command)
        (read,) = FrameReader(Limits()).feed(made)
        (same,) = FrameReader(Limits()).feed(wanted)
        assert read.header(SendMessageHeaderV2) == same.header(SendMessageHeaderV2)
        assert read.fields == same.fields
        for command in (read, same):
            command.raw_fields, command.known_fields = msgspec.Raw(), None
        assert read == same
        assert len(made) == len(wanted) == 4 + LENGTHS.unpack_from(made)[0]


def test_a_template_is_made_for_each_topic_and_kind_of_send() -> None:
    frames, queue = SendFrames("g"), MessageQueue("", "b", 0)
    batch = Outgoings(KEYS, lambda: 0, None, 1 << 20).batch([Message(topic="a", body=b"")])
    several = [outgoing_of(Message(topic="a", body=b"")), outgoing_of(Message(topic="b", body=b""))]
    for outgoing in (*several, batch, *several):
        (read,) = FrameReader(Limits()).feed(frames.frame(outgoing, queue, 1))
        assert read.code == outgoing.code
        assert read.fields["b"] == outgoing.topic
        assert read.fields["m"] == ("true" if outgoing is batch else "false")
