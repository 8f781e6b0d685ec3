"""What the kernel reads of a header is what the decoder reads, whatever the bytes."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.broker.lane.choice import is_chosen
from mqlake.errors import FormatError
from mqlake.protocol.command import Serialization
from mqlake.protocol.frames import decode as decode_frame
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import PullHeader
from mqlake.protocol.signature import SIGNATURE, Credentials, signed
from tests.broker.pull.pulls import pull_header
from tests.protocol.test_golden import golden

if not is_chosen():
    pytest.skip("there is no lane", allow_module_level=True)

from mqlake.broker.lane import pull_layout as layout
from mqlake.broker.lane.pull_decisions import decode
from mqlake.broker.lane.pull_kernel import PullKernel
from mqlake.broker.lane.pull_tables import PullTables
from mqlake.broker.lane.pull_texts import signed_text, text_of_key
from mqlake.broker.lane.user_table import UserTable
from tests.broker.lane.pull_lanes import pull_frame

NOTHING: Any = np.zeros(1, np.uint8)
KERNEL = PullKernel(PullTables(np.zeros((1, 3), np.int64), UserTable()), NOTHING, NOTHING)
ARRAYS = KERNEL.tables.arrays


def read(header: bytes, kind: int) -> tuple[bytes, list[int]] | None:
    """Return the key of a header, and its numbers, of which the last one is its signature; None if
    it is not typical.
    """
    size = KERNEL.read(header, kind)
    if size < 0:
        return None
    *numbers, at = ARRAYS.numbers.tolist()
    signature = header[at : at + layout.SIGNATURE_SIZE].decode("latin-1") if at >= 0 else None
    return ARRAYS.key[8 : 8 + size].tobytes(), [*numbers, number_of(signature)]


def number_of(signature: str | None) -> int:
    """Return the number that is written as a signature, -1 without one, -2 if it is no Base64."""
    if signature is None:
        return -1
    try:
        return int.from_bytes(b64decode(signature))
    except ValueError:
        return -2


def numbers_of(header: bytes, kind: int) -> list[int]:
    request = decode(kind, header)
    fields = request.header(PullHeader)
    numbers = fields.queue_id, fields.queue_offset, fields.commit_offset, request.opaque
    return [*numbers, number_of(request.fields.get(SIGNATURE))]


@pytest.mark.parametrize("kind", ["json", "binary"])
def test_headers_of_the_stock_client(kind: str) -> None:
    frame = golden("pull", kind)
    found = read(frame[8:], frame[4])
    assert found is not None
    assert found[1] == numbers_of(frame[8:], frame[4])


offsets = st.integers(0, 10**18 - 1)


@given(
    kind=st.sampled_from(list(Serialization)),
    queue=st.integers(0, 2**31 - 1),
    offset=offsets,
    commit=offsets,
    opaque=st.integers(0, 2**31 - 1),
    topic=st.text(max_size=20),
    user=st.sampled_from([None, Credentials("ann", "a-password"), Credentials("größer", "x")]),
)
def test_headers_differ_in_their_numbers_and_signatures_only(
    kind: int,
    queue: int,
    offset: int,
    commit: int,
    opaque: int,
    topic: str,
    user: Credentials | None,
) -> None:
    def header(*numbers: int) -> bytes:
        made = pull_header(numbers[1], queue_id=numbers[0], commit_offset=numbers[2], topic=topic)
        frame = pull_frame(numbers[3], int(kind), made)
        return (frame if user is None else encode(signed(decode_frame(frame), user)))[8:]

    numbers = queue, offset, commit, opaque
    data = header(*numbers)
    found, other = read(data, kind), read(header(1, 22, 333, 4444), kind)
    assert found is not None
    assert other is not None
    request = decode(kind, data)
    signature = request.fields.get(SIGNATURE)
    assert found == (other[0], [*numbers, number_of(signature)])
    assert text_of_key(ARRAYS.key, len(found[0])).fill(found[1]) == data
    if user is not None:
        text = signed_text(request)
        assert text is not None
        right = hmac.digest(user.secret_key.encode(), text.fill(numbers), "sha1")
        assert signature == b64encode(right).decode()


@settings(max_examples=400)
@given(kind=st.sampled_from(list(Serialization)), data=st.data())
def test_changed_headers_have_another_key_or_other_numbers(kind: int, data: st.DataObject) -> None:
    frame = pull_frame(17, int(kind), pull_header(123, commit_offset=45))
    if data.draw(st.booleans()):
        frame = encode(signed(decode_frame(frame), Credentials("ann", "a-password")))
    header = frame[8:]
    usual = read(header, kind)
    at = data.draw(st.integers(0, len(header) - 1))
    until = data.draw(st.integers(at, min(len(header), at + 12)))
    changed = header[:at] + data.draw(st.binary(max_size=12)) + header[until:]
    found = read(changed, kind)
    if changed == header or found is None:
        return
    assert found != usual
    is_same = usual is not None and found[0] == usual[0]
    if is_same and _is_a_signature(decode(kind, changed).fields.get(SIGNATURE)):
        assert found[1] == numbers_of(changed, kind)


def _is_a_signature(text: str | None) -> bool:
    """Return whether a text, if it is not missing, is as signatures are written."""
    number = number_of(text)
    if not 0 <= number < 1 << 160:
        return number == -1
    return b64encode(number.to_bytes(20)).decode() == text


@settings(max_examples=400)
@given(kind=st.integers(0, 255), header=st.binary(max_size=1300))
def test_any_bytes(kind: int, header: bytes) -> None:
    found = read(header, kind)
    if found is not None:
        assert text_of_key(ARRAYS.key, len(found[0])).fill(found[1]) == header


@given(kind=st.sampled_from(list(Serialization)), data=st.data())
def test_a_frame_is_served_only_if_it_is_whole(kind: int, data: st.DataObject) -> None:
    frame = pull_frame(17, int(kind), pull_header(123))
    end = data.draw(st.integers(0, len(frame)))
    received, answers = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    received[:end] = np.frombuffer(frame[:end], np.uint8)
    ARRAYS.state[:] = 0
    ARRAYS.state[layout.RECEIVED] = end
    reason = KERNEL.serve(received, answers)
    assert reason == (layout.NEW if end == len(frame) else layout.PART)


def test_names_that_occur_twice_are_not_typical() -> None:
    header = pull_frame(17, 0, pull_header(123))[8:]
    twice = header.replace(b'"queueId":"0"', b'"queueId":"0","queueId":"1"')
    assert twice != header
    assert read(twice, 0) is None
    with pytest.raises(FormatError):
        decode(0, header[:-1]).header(PullHeader)
