"""Headers of the PROXY protocol: what they say, and that anything else is refused in time."""

from __future__ import annotations

import random

import pytest

from mqlake.remoting.proxy_protocol.header import (
    MOST,
    ProxyHeader,
    ProxyHeaderError,
    may_begin,
    read,
)
from tests.remoting.proxy_protocol.headers import any_header, binary, line, start

TLV = b"\x04\x00\x03abc"


@pytest.mark.parametrize(
    ("data", "client"),
    [
        (b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", "192.168.0.1:56324"),
        (b"PROXY TCP6 2001:db8::1 ::1 7 443\r\n", "[2001:db8::1]:7"),
        (b"PROXY TCP6 ::ffff:10.1.2.3 ::1 7 443\r\n", "10.1.2.3:7"),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN ffff:: anything 0 0 0 0\r\n", None),
        (binary("192.168.0.1", 56324), "192.168.0.1:56324"),
        (binary("2001:db8::1", 7, "::1"), "[2001:db8::1]:7"),
        (binary("::ffff:10.1.2.3", 7, "::1"), "10.1.2.3:7"),
        (binary("192.168.0.1", 56324, extra=TLV), "192.168.0.1:56324"),
        (binary("192.168.0.1", 0), None),
        (binary("192.168.0.1", 56324, command=0), None),
        (start(0x20, 0, 0), None),
        (start(0x21, 0, 5) + b"12345", None),
        (start(0x21, 0x31, 216) + b"/run/a".ljust(108, b"\0") + b"/run/b".ljust(108, b"\0"), None),
    ],
)
def test_a_header_names_a_client_or_none(data: bytes, client: str | None) -> None:
    assert may_begin(data)
    assert read(data + b"and more") == ProxyHeader(len(data), client)


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY \r\n",
        b"PROXY TCP4\r\n",
        b"PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n",
        b"PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 0 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1_0 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 \u00b2 1\r\n".encode(),
        b"PROXY TCP4 1.2.3.4:5 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 ::1 ::1 1 1\r\n",
        b"PROXY TCP6 1.2.3.4 ::1 1 1\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 1\r\n",
        b"PROXY TCP4  1.2.3.4 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 1.2.3.4 localhost 1 1\r\n",
        b"PROXY TCP4 " + b"1" * 200,
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n".ljust(107, b" "),
        start(0x11, 0x11, 12) + bytes(12),
        start(0x31, 0x11, 12) + bytes(12),
        start(0x22, 0x11, 12) + bytes(12),
        start(0x21, 0x41, 12) + bytes(12),
        start(0x21, 0x13, 12) + bytes(12),
        start(0x21, 0x10, 12) + bytes(12),
        start(0x21, 0x11, 11) + bytes(11),
        start(0x21, 0x21, 35) + bytes(35),
        start(0x21, 0x31, 215) + bytes(215),
    ],
)
def test_other_texts_are_refused(data: bytes) -> None:
    assert may_begin(data)
    with pytest.raises(ProxyHeaderError):
        read(data)


def test_a_part_decides_nothing_and_the_longest_part_decides() -> None:
    rng = random.Random(39)
    for _ in range(300):
        data, client = any_header(rng)
        decided = [read(data[:size]) for size in range(1, min(len(data), MOST) + 1)]
        assert all(may_begin(data[:size]) for size in range(min(len(data), MOST) + 1))
        assert decided[0] is None
        assert decided[-1] == ProxyHeader(len(data), client)


def test_frames_and_tls_never_begin_as_a_header_does() -> None:
    for length in (5, 1 << 10, 1 << 24):
        assert not may_begin(length.to_bytes(4))
    assert not may_begin(b"\x16\x03\x01")


def test_mutated_headers_are_read_or_refused() -> None:
    rng = random.Random(40)
    outcomes: set[type] = set()
    for _ in range(20_000):
        data, _ = any_header(rng)
        mutated = bytearray(data[:MOST])
        for _ in range(rng.randrange(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        if not may_begin(bytes(mutated)):
            continue
        try:
            found = read(bytes(mutated))
        except ProxyHeaderError as error:
            outcomes.add(type(error))
        else:
            assert found is None or 0 < found.size <= 65_551
            outcomes.add(type(found))
    assert outcomes == {ProxyHeader, ProxyHeaderError, type(None)}
    assert line("1.2.3.4", 5).startswith(b"PROXY TCP4 ")
