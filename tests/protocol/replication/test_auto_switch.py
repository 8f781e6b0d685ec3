"""Handshakes, reports and frames under a controller: docs/formats/replication.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.epoch_file import Epoch
from mqlake.protocol.replication.auto_switch import (
    EpochPiece,
    Handshake,
    HandshakeAnswer,
    MasterReader,
    SlaveReader,
    encode_answer,
    encode_handshake,
    encode_head,
    encode_report,
)
from tests.protocol.replication.test_frames import BODIES, OFFSETS, cut

EPOCHS = (Epoch(1, 0), Epoch(3, 700))


def test_layouts_of_messages_and_frames() -> None:
    assert encode_handshake(Handshake(2, is_learner=True)).hex() == (
        "00000001000000010000000000000002"
    )
    assert encode_report(5).hex() == "000000020000000000000005"
    answer = encode_answer(HandshakeAnswer(900, EPOCHS))
    assert answer.hex() == (
        "00000001000000180000000000000384000000030000000100000000000000000000000300000000000002bc"
    )
    assert encode_head(800, 4, EPOCHS[1], 700).hex() == (
        "000000020000000400000000000003200000000300000000000002bc00000000000002bc"
    )


@given(st.lists(OFFSETS, max_size=8), st.lists(st.integers(0, 120)))
def test_what_a_slave_sends_may_be_cut_anywhere(offsets: list[int], at: list[int]) -> None:
    handshake, reader = Handshake(7, from_last_file=True), SlaveReader()
    data = encode_handshake(handshake) + b"".join(map(encode_report, offsets))
    found = [message for part in cut(data, at) for message in reader.feed(part)]
    assert found == [handshake, *offsets]


@given(BODIES, st.lists(st.integers(0, 600)))
def test_what_a_master_sends_may_be_cut_anywhere(bodies: list[bytes], at: list[int]) -> None:
    answer, reader = HandshakeAnswer(900, EPOCHS), MasterReader()
    data, offset = encode_answer(answer), 700
    for body in bodies:
        data += encode_head(offset, len(body), EPOCHS[1], 650) + body
        offset += len(body)
    answers, pieces, heartbeats = list[HandshakeAnswer](), b"", 0
    for part in cut(data, at):
        for message in reader.feed(part):
            if isinstance(message, EpochPiece):
                assert (message.epoch, message.confirmed) == (EPOCHS[1], 650)
                heartbeats += not message.piece.data
                pieces += message.piece.data
            else:
                answers.append(message)
    assert (answers, pieces) == ([answer], b"".join(bodies))
    assert heartbeats == sum(not body for body in bodies)


def test_a_reader_may_stop_at_the_answer() -> None:
    reader = MasterReader()
    data = encode_answer(HandshakeAnswer(900, EPOCHS))
    assert next(reader.feed(data)) == HandshakeAnswer(900, EPOCHS)
    (found,) = reader.feed(encode_head(900, 0, EPOCHS[1], 900))
    assert isinstance(found, EpochPiece)


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 8,
        bytes.fromhex("00000001 00000000 ffffffffffffffff"),
        bytes.fromhex("00000002 ffffffffffffffff"),
        bytes.fromhex("0000000000001000") * 2,  # a slave without a controller
    ],
)
def test_invalid_messages_of_slaves_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(SlaveReader().feed(data))


@pytest.mark.parametrize(
    "data",
    [
        b"GET /",
        bytes.fromhex("00000001 7fffffff 0000000000000384 00000003"),
        bytes.fromhex("00000001 00000001 0000000000000384 00000003"),
        encode_answer(HandshakeAnswer(900, EPOCHS[::-1])),
        bytes.fromhex("00000002 ffffffff") + bytes(28),
    ],
)
def test_invalid_messages_of_masters_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        list(MasterReader().feed(data))


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_any_bytes_are_read_or_refused(data: bytes, at: list[int]) -> None:
    for reader in (SlaveReader(), MasterReader()):
        try:
            for part in cut(data, at):
                list(reader.feed(part))
        except FormatError:
            continue
