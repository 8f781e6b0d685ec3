"""The bytes of a call are cut into requests."""

from __future__ import annotations

import pytest

from mqlake.grpc.request_bytes import RequestBytes, whole_message
from mqlake.grpc.responses import prefixed
from mqlake.grpc.status import GrpcError, GrpcStatus


def test_requests_are_found_however_they_arrive() -> None:
    sent, found = b"".join(map(prefixed, (b"one", b"", b"three"))), list[bytes]()
    requests = RequestBytes(10, "someSize")
    for at in range(len(sent)):
        requests.add(sent[at : at + 1])
        while (message := requests.take()) is not None:
            found.append(message)
    assert found == [b"one", b"", b"three"]
    assert requests.held == 0


def test_it_says_how_much_a_request_lacks() -> None:
    requests, sent = RequestBytes(10, "someSize"), prefixed(b"12345")
    assert (requests.missing(), requests.is_incomplete) == (5, False)
    requests.add(sent[:2])
    assert (requests.missing(), requests.is_incomplete) == (3, True)
    requests.add(sent[2:7])
    assert (requests.missing(), requests.is_incomplete) == (3, True)
    assert requests.take() is None
    requests.add(sent[7:])
    assert (requests.missing(), requests.is_incomplete) == (0, False)


def test_taken_requests_hold_no_memory() -> None:
    requests = RequestBytes(1000, "someSize")
    rest = prefixed(b"a")
    requests.add(prefixed(bytes(1000)) * 100 + rest)
    for _ in range(100):
        assert requests.take() == bytes(1000)
    assert requests.held == len(rest)
    assert requests.take() == b"a"


def test_what_arrived_can_be_forgotten() -> None:
    requests = RequestBytes(10, "someSize")
    requests.add(prefixed(b"one") + b"\0")
    requests.take()
    requests.clear()
    assert (requests.held, requests.is_incomplete) == (0, False)


def test_a_request_that_is_compressed_is_refused() -> None:
    requests = RequestBytes(10, "someSize")
    requests.add(b"\1" + prefixed(b"")[1:])
    with pytest.raises(GrpcError, match="accepts identity") as caught:
        requests.take()
    assert caught.value.status is GrpcStatus.UNIMPLEMENTED


def test_a_request_that_is_too_large_is_refused_before_it_has_arrived() -> None:
    requests = RequestBytes(10, "someSize")
    requests.add(prefixed(bytes(11))[:5])
    with pytest.raises(GrpcError, match=r"11 bytes: .* is 10 \(someSize\)") as caught:
        requests.missing()
    assert caught.value.status is GrpcStatus.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (prefixed(b"one"), b"one"),
        (prefixed(b""), b""),
        (prefixed(b"one")[:-1], None),
        (prefixed(b"one") + b"x", None),
        (b"\1" + prefixed(b"one")[1:], None),
        (prefixed(bytes(6)), None),
        (b"\0\0\0\0", None),
        (b"", None),
    ],
)
def test_a_frame_that_is_exactly_one_message_is_recognized(
    data: bytes, expected: bytes | None
) -> None:
    assert whole_message(data, 10) == expected
