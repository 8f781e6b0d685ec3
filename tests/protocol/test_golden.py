"""Frames that RocketMQ's client 5.5.0 sent, in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.frames import encode
from mqlake.protocol.header import Header
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.headers.pull import PullHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.protocol.json_header import decode_typed
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("send", "send_batch", "pull", "heartbeat", "route", "update_offset")
KINDS: dict[str, tuple[RequestCode, type[Header]]] = {
    "send": (RequestCode.SEND_MESSAGE_V2, SendMessageHeaderV2),
    "send_batch": (RequestCode.SEND_BATCH_MESSAGE, SendMessageHeaderV2),
    "pull": (RequestCode.PULL_MESSAGE, PullHeader),
    "route": (RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader),
}


def golden(name: str, form: str) -> bytes:
    return (GOLDEN / f"{name}.{form}").read_bytes()


def read(data: bytes) -> Command:
    (command,) = FrameReader(Limits()).feed(data)
    return command


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_are_written_as_they_were_read(name: str) -> None:
    binary, json = golden(name, "binary"), golden(name, "json")
    assert encode(read(binary)) == binary
    if name != "heartbeat":  # the only one with `"extFields":{}`, which is left out
        assert encode(read(json)) == json
    assert read(binary).serialization == Serialization.ROCKETMQ
    assert read(binary).fields.keys() == read(json).fields.keys()


@pytest.mark.parametrize("name", KINDS)
def test_json_and_binary_forms_decode_to_the_same_command(name: str) -> None:
    code, kind = KINDS[name]
    binary, json = read(golden(name, "binary")), read(golden(name, "json"))
    assert binary.code == json.code == code
    same = {"born_timestamp": 0, "properties": "", "queue_id": 0, "sub_version": 0}
    headers = [command.header(kind) for command in (binary, json)]
    for header in headers:
        for field, value in same.items():  # they were sent one after the other
            if hasattr(header, field):
                setattr(header, field, value)
    assert headers[0] == headers[1]


def test_fields_that_are_decoded_with_the_frame_are_the_same() -> None:
    data = golden("send", "json")
    typed = FrameReader(Limits(), decode_typed({310: SendMessageHeaderV2}))
    (command,) = typed.feed(data)
    header = read(data).header(SendMessageHeaderV2)
    assert command.header(SendMessageHeaderV2) == header
    assert (header.topic, header.producer_group, header.queue_id) == ("Orders", "P_Orders", 1)
    assert header.properties is not None
    assert header.properties.startswith("UNIQ_KEY\x01FD00")
