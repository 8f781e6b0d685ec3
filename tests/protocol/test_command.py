"""Header fields as what they stand for."""

from __future__ import annotations

import pytest

from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import HeaderError
from mqlake.protocol.frames import encode
from mqlake.protocol.header import Header, Int32, Int64, to_fields
from mqlake.protocol.json_header import decode_typed
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.protocol.messages import binary_header, frame, json_header, pair


class Sample(Header):
    queue_id: Int32
    born_time: Int64 = 0
    is_new: bool | None = None
    name: str | None = None


def received(fields: object) -> Command:
    (command,) = FrameReader(Limits()).feed(frame(json_header(extFields=fields)))
    return command


def test_strings_become_what_they_stand_for() -> None:
    sample = received({"queueId": "3", "bornTime": "-1", "isNew": "true", "name": "5", "x": "y"})
    assert sample.header(Sample) == Sample(queue_id=3, born_time=-1, is_new=True, name="5")


def test_a_binary_header_has_the_same_fields() -> None:
    data = frame(binary_header(pair(b"queueId", b"3") + pair(b"isNew", b"false")), kind=1)
    (command,) = FrameReader(Limits()).feed(data)
    assert command.header(Sample) == Sample(queue_id=3, is_new=False)


def test_numbers_may_stand_unquoted_as_fastjson_takes_them() -> None:
    sample = received({"queueId": 3, "bornTime": None, "isNew": True, "name": 5})
    assert sample.header(Sample) == Sample(queue_id=3, is_new=True, name="5")


def test_what_goes_out_is_strings() -> None:
    header = Sample(queue_id=3, is_new=False, name="")
    assert to_fields(header) == {"queueId": "3", "bornTime": "0", "isNew": "false", "name": ""}
    (command,) = FrameReader(Limits()).feed(encode(request(1, header)))
    assert command.header(Sample) == header


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "Sample: Object missing required field `queueId`"),
        (None, "Sample: Object missing required field `queueId`"),
        ({"queueId": "x"}, r"Sample: Expected `int`, got `str` - at `\$.queueId`"),
        ({"queueId": "2147483648"}, r"Sample: .*<= 2147483647.*queueId"),
        ({"queueId": "1", "bornTime": "9" * 5000}, "Sample: .*bornTime"),
        ({"queueId": "1", "isNew": "yes"}, "Sample: .*isNew"),
        ({"queueId": {}}, "extFields: queueId is not a plain value"),
        ([1], "extFields is not an object"),
        ("x", "extFields is not an object"),
    ],
)
def test_invalid_fields_are_an_error_of_one_line(fields: object, reason: str) -> None:
    command = received(fields)
    with pytest.raises(HeaderError, match=f"^{reason}[^\n]*$"):
        command.header(Sample)


TYPED = decode_typed({310: Sample})


def typed(fields: object) -> Command:
    (command,) = FrameReader(Limits(), TYPED).feed(frame(json_header(extFields=fields)))
    return command


def test_typed_fields_are_decoded_with_their_frame() -> None:
    command = typed({"queueId": "3", "more": "x"})
    assert isinstance(command.raw_fields, Sample)
    assert command.header(Sample) == Sample(queue_id=3)
    assert command.opaque == 7


class Other(Header):
    queue_id: str


def test_typed_fields_may_be_asked_for_as_another_type() -> None:
    command = typed({"queueId": "3"})
    assert command.header(Other) == Other(queue_id="3")
    assert command.fields == {"queueId": "3"}


def test_fields_that_a_type_does_not_know_are_there_for_who_asks() -> None:
    """As a signature is, which no type of a request has."""
    fields = {"queueId": "3", "Signature": "abc", "AccessKey": "me"}
    command = typed(fields)
    assert isinstance(command.raw_fields, Sample)
    assert command.fields == fields


def test_typed_fields_that_are_wrong_are_the_handlers_affair() -> None:
    command = typed({"queueId": "x"})
    assert command.fields == {"queueId": "x"}
    with pytest.raises(HeaderError, match="queueId"):
        command.header(Sample)


@pytest.mark.parametrize("code", [310, 12])
def test_what_is_known_of_a_command_here_cannot_be_stated_by_its_header(code: int) -> None:
    own = {" fields": {"queueId": "9"}, " body": "eA==", " serialization": 300, " encoded": "eA=="}
    header = json_header(code=code, extFields={"queueId": "3"}, **own)
    (command,) = FrameReader(Limits(), TYPED).feed(frame(header))
    assert isinstance(command, Command)
    assert command.fields == {"queueId": "3"}
    assert command.header(Sample) == Sample(queue_id=3)
    assert (command.serialization, command.body) == (0, b"")
