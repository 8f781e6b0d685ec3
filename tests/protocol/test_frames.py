"""Frames: what goes in comes out, however it is cut; what is no frame is refused with a reason."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, oneway, request, response
from mqlake.protocol.errors import FrameError
from mqlake.protocol.frames import encode
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.protocol.messages import SEND_FIELDS, binary_header, frame, json_header, pair

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def read(data: bytes, limits: Limits | None = None) -> list[Command]:
    return list(FrameReader(limits or Limits()).feed(data))


def test_reads_what_a_java_client_sends() -> None:
    (command,) = read(frame(json_header(), b"body"))
    assert command.code == RequestCode.SEND_MESSAGE_V2
    assert (command.opaque, command.language, command.version) == (7, "JAVA", 513)
    assert command.fields == SEND_FIELDS
    assert command.body == b"body"
    assert not command.is_response
    assert not command.is_oneway


def test_writes_what_a_java_client_writes() -> None:
    (command,) = read(frame(json_header(), b"body"))
    assert encode(command) == frame(json_header(), b"body")


def test_reads_a_binary_header() -> None:
    fields = pair(b"topic", b"T") + pair("größe".encode(), b"")
    (command,) = read(frame(binary_header(fields, remark=b"why"), b"b", kind=1))
    assert command.serialization == Serialization.ROCKETMQ
    assert (command.code, command.language, command.remark) == (34, "GO", "why")
    assert command.fields == {"topic": "T", "größe": ""}
    assert encode(command) == frame(binary_header(fields, remark=b"why"), b"b", kind=1)


@given(
    st.sampled_from(Serialization),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 3),
    st.none() | TEXT.filter(bool),
    st.dictionaries(TEXT, TEXT, max_size=4),
    st.binary(max_size=40),
)
def test_round_trip(
    kind: Serialization,
    code: int,
    opaque: int,
    flag: int,
    remark: str | None,
    fields: dict[str, str],
    body: bytes,
) -> None:
    command = Command(code, opaque, flag, remark, "GO", 401, known_fields=fields, body=body)
    command.serialization = kind
    (again,) = read(encode(command))
    assert again.fields == fields
    again.raw_fields = command.raw_fields
    assert again == command


@given(st.randoms(use_true_random=False))
def test_pieces_of_any_size_give_the_same_commands(dice: random.Random) -> None:
    frames = [
        frame(json_header(opaque=i), dice.randbytes(dice.choice((0, 5, 300)))) for i in range(5)
    ]
    data = b"".join(frames)
    reader, found, at = FrameReader(Limits()), [], 0
    while at < len(data):
        piece = data[at : at + dice.choice((1, 3, 50, 400))]
        found += reader.feed(piece)
        at += len(piece)
    assert reader.unfinished == 0
    assert [encode(command) for command in found] == frames


@given(st.randoms(use_true_random=False))
def test_large_frames_in_place_give_the_same_commands(dice: random.Random) -> None:
    sizes = (0, 300, 1 << 17, 200_000, 300_000)
    frames = [frame(json_header(opaque=i), bytes([i]) * dice.choice(sizes)) for i in range(5)]
    data = b"".join(frames)
    reader, found, at = FrameReader(Limits(), in_place=True), [], 0
    while at < len(data):
        count = dice.choice((7, 5000, 100_000, 1 << 18))
        room = reader.room()
        if room is None:
            count = min(count, len(data) - at)
            found += reader.feed(data[at : at + count])
        else:
            count = min(count, len(room))
            room[:count] = data[at : at + count]
            found += reader.fill(count)
        at += count
    assert reader.unfinished == 0
    assert [encode(command) for command in found] == frames


def test_a_large_frame_in_place_counts_from_its_beginning() -> None:
    data = frame(json_header(), bytes(1 << 18))
    reader = FrameReader(Limits(), in_place=True)
    assert list(reader.feed(data[:100])) == []
    assert reader.unfinished == len(data)
    reader.clear()
    assert reader.room() is None
    assert reader.unfinished == 0


@pytest.mark.parametrize(("size", "is_kept"), [(1 << 18, True), (5 << 20, False)])
def test_a_buffer_of_many_bytes_is_not_kept(size: int, is_kept: bool) -> None:
    data = frame(json_header(), bytes(size))
    reader, buffers = FrameReader(Limits(), in_place=True), list[object]()
    for _ in range(2):
        assert list(reader.feed(data[:100])) == []
        room = reader.room()
        assert room is not None
        buffers.append(room.obj)
        room[:] = data[100:]
        (command,) = reader.fill(len(room))
        assert encode(command) == data
    assert (buffers[0] is buffers[1]) == is_kept


def test_a_response_answers_in_the_form_of_its_request() -> None:
    (asked,) = read(frame(binary_header(b""), kind=1))
    (answer,) = read(encode(response(asked, ResponseCode.NO_MESSAGE, {"a": "b"}, remark="none")))
    assert answer.is_response
    assert answer.serialization == Serialization.ROCKETMQ
    assert (answer.opaque, answer.remark, answer.fields) == (7, "none", {"a": "b"})


def test_oneway_says_so() -> None:
    assert oneway(RequestCode.HEART_BEAT).is_oneway
    assert not request(RequestCode.HEART_BEAT).is_oneway


SMALL = Limits(frame=1000, header=500)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"GET / HTTP/1.1\r\n", "begins with 'GET '"),
        (b"\x00\x00\x00\x03\x00\x00\x00\x00", "a header of 0 bytes in a frame of 3"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x05", "a header of 5 bytes in a frame of 8"),
        (b"\x00\x00\x03\xe9\x00\x00\x00\x05", "a frame of 1001 bytes, the limit is 1000"),
        (b"\x00\x00\x03\xe8\x00\x00\x01\xf5", "a header of 501 bytes, the limit is 500"),
        (frame(b"{}", kind=2), "unknown serialization, 2"),
        (frame(b""), "not the JSON of a command"),
        (frame(b"[1]"), "not the JSON of a command"),
        (frame(b"{}"), "missing required field `code`"),
        (frame(b'{"code":"x"}'), "`$.code`"),
        (frame(b'{"code":2147483648}'), "`$.code`"),
        (frame(b'{"code":1,"remark":7}'), "`$.remark`"),
        (frame(b'{"code":1,"x":' + b"[" * 150 + b"}"), "nested deeper"),
        (frame(b"\x00\x01", kind=1), "a binary header of 2 bytes"),
        (frame(binary_header(b"", end=b"x"), kind=1), "1 bytes after the fields"),
        (frame(binary_header(b"\x00"), kind=1), "ends within a length"),
        (frame(binary_header(b"\x00\x05ab"), kind=1), "ends within a length"),
        (frame(binary_header(b"\x00\x02abcd"), kind=1), "ends within a length"),
        (frame(binary_header(b"\xff\xffabcd"), kind=1), "ends after the fields"),
        (frame(binary_header(b"\x00\x01a\xff\xff\xff\xff"), kind=1), "ends after the fields"),
        (frame(binary_header(b"\x00\x01a\x00\x00\x00\x01"), kind=1), "ends after the fields"),
        (frame(binary_header(pair(b"a", b"b"))[:-1], kind=1), "end after it"),
        (frame(binary_header(b"", remark=b"why")[:-6], kind=1), "a remark of 3 bytes"),
    ],
)
def test_invalid_frames_are_refused(data: bytes, reason: str) -> None:
    reader = FrameReader(SMALL)
    with pytest.raises(FrameError, match=reason.replace("$", r"\$")):
        list(reader.feed(data))
    assert reader.unfinished == 0


def test_good_frames_before_a_bad_one_are_read() -> None:
    commands = FrameReader(Limits()).feed(frame(json_header(opaque=1)) + frame(b"x"))
    assert next(commands).opaque == 1
    with pytest.raises(FrameError):
        next(commands)


def test_what_fastjson_writes_and_json_does_not_know_is_read() -> None:
    header = b"{code:34,'flag':0,language:null,extFields:{0:'a',b:1,c:true,d:null,},opaque:5}"
    (command,) = read(frame(header))
    assert command.opaque == 5
    assert command.fields == {"0": "a", "b": "1", "c": "true"}


def test_a_code_that_a_binary_header_cannot_hold_is_refused() -> None:
    command = request(RequestCode.POP_MESSAGE)
    command.serialization = Serialization.ROCKETMQ
    with pytest.raises(FrameError, match="200050"):
        encode(command)
