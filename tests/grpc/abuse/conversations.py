"""What honest clients send: the material that is then changed."""

from __future__ import annotations

import random
from typing import NamedTuple

from google.protobuf.message import Message as ProtobufMessage

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.headers import literal
from mqlake.grpc.messages import (
    HeartbeatRequest,
    Message,
    ReceiveMessageRequest,
    Resource,
    SendMessageRequest,
    Settings,
    SystemProperties,
    TelemetryCommand,
    Timestamp,
)
from mqlake.grpc.method import SERVICE
from mqlake.grpc.responses import prefixed


class Piece(NamedTuple):
    """A frame that a client sends.

    Attributes:
        kind, flags, stream, payload: what the frame has.
    """

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def encoded(self) -> bytes:
        """Return its bytes."""
        return frames.frame(self.kind, self.flags, self.stream, self.payload)


def request(chance: random.Random) -> tuple[str, ProtobufMessage]:
    """Return a method, and a request of it."""
    name = chance.choice(("SendMessage", "SendMessage", "Heartbeat", "ReceiveMessage", "Telemetry"))
    topic = Resource(name=chance.choice(("t", "orders", "x" * 100)))
    match name:
        case "SendMessage":
            properties = SystemProperties(
                tag="t", keys=["a", "b"], born_timestamp=Timestamp(seconds=1), queue_offset=3
            )
            message = Message(
                topic=topic,
                user_properties={"a": "b"},
                system_properties=properties,
                body=bytes(chance.choice((0, 10, 1000, 20_000))),
            )
            return name, SendMessageRequest(messages=[message] * chance.randrange(1, 4))
        case "Heartbeat":
            return name, HeartbeatRequest(group=topic, client_type=2)
        case "ReceiveMessage":
            return name, ReceiveMessageRequest(group=topic, batch_size=chance.randrange(8))
        case _:
            return name, TelemetryCommand(settings=Settings(client_type=1))


def fields_of(name: str, chance: random.Random) -> bytes:
    """Return the headers of a call, in the forms that clients use."""
    path = literal(":path", f"/{SERVICE}/{name}")
    block = b"\x83\x86" + path + literal("content-type", "application/grpc")
    for number in range(chance.randrange(4)):
        field = literal(f"x-mq-{number}", "v" * chance.randrange(40))
        block += chance.choice((field, b"\x40" + field[1:], b"\x10" + field[1:]))
    if chance.random() < 0.3:
        block += literal("grpc-timeout", chance.choice(("30S", "5000m", "1H")))
    return block


def call(stream: int, chance: random.Random) -> list[Piece]:
    """Return the frames of a call."""
    name, message = request(chance)
    block = fields_of(name, chance)
    content = prefixed(message.SerializeToString())
    if name == "Telemetry":
        content *= chance.randrange(1, 4)
    pieces = [Piece(frames.HEADERS, frames.END_HEADERS, stream, block)]
    if chance.random() < 0.1:
        cut = chance.randrange(len(block))
        pieces = [
            Piece(frames.HEADERS, 0, stream, block[:cut]),
            Piece(frames.CONTINUATION, frames.END_HEADERS, stream, block[cut:]),
        ]
    step = chance.choice((16_384, 16_384, 1000, 100))
    parts = [content[at : at + step] for at in range(0, len(content), step)]
    pieces += [Piece(frames.DATA, 0, stream, part) for part in parts[:-1]]
    pieces.append(Piece(frames.DATA, frames.END_STREAM, stream, parts[-1]))
    return pieces


def conversation(chance: random.Random) -> list[Piece]:
    """Return the frames after the preface: settings, and some calls at a time."""
    settings = chance.choice(({}, {frames.INITIAL_WINDOW_SIZE: chance.choice((0, 100, 1 << 20))}))
    found = [Piece(frames.SETTINGS, 0, 0, frames.settings(settings)[frames.HEAD.size :])]
    calls = [call(1 + 2 * number, chance) for number in range(chance.randrange(1, 6))]
    opened = 0
    while any(calls):
        # Headers begin in the order of their streams.
        open_calls = [one for one in calls[: opened + 1] if one]
        one = chance.choice(open_calls or [next(one for one in calls if one)])
        if one is calls[min(opened, len(calls) - 1)]:
            opened += 1
        found.append(one.pop(0))
        if found[-1].kind == frames.HEADERS and not found[-1].flags & frames.END_HEADERS:
            found.append(one.pop(0))
        if chance.random() < 0.1:
            found.append(other(found[-1].stream, chance))
    return found


def other(stream: int, chance: random.Random) -> Piece:
    """Return a frame that clients send between others."""
    return chance.choice(
        (
            Piece(frames.PING, 0, 0, bytes(8)),
            Piece(frames.WINDOW_UPDATE, 0, 0, (1000).to_bytes(4)),
            Piece(frames.WINDOW_UPDATE, 0, stream, (1000).to_bytes(4)),
            Piece(frames.SETTINGS, 1, 0, b""),
            Piece(frames.RST_STREAM, 0, stream, (8).to_bytes(4)),
        )
    )
