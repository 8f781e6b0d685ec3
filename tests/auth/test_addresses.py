"""The forms of addresses in ACL 1.0; the expected values are those of RocketMQ 4.9.8's own tests
and code.
"""

from __future__ import annotations

import random

import pytest

from mqlake.auth.plain.addresses import addresses
from mqlake.auth.plain.ip_text import expanded
from mqlake.errors import FormatError


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["1.2.3.4", "::1"], []),
        ("*.*.*.*", ["1.2.3.4", "fe80::1"], []),
        ("*:*:*:*:*:*:*:*", ["1.2.3.4", "fe80::1"], []),
        ("", [], ["1.2.3.4"]),
        ("  ", [], ["1.2.3.4"]),
        (None, [], ["1.2.3.4"]),
        ("127.0.0.1", ["127.0.0.1"], ["127.0.0.2", "::1"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2"]),
        ("5::7:6:1-200:*", ["5::7:6:1:1", "5::7:6:200:ffff"], ["5::7:6:201:1", "5::7:7:1:1"]),
        ("127.0.0.{1,2,3}", ["127.0.0.1", "127.0.0.3"], ["127.0.0.4", "127.0.0.13"]),
        ("1ac:23:7::{1,2f}", ["1ac:23:7::1", "1AC:23:7::2F"], ["1ac:23:7::2"]),
        ("127.0.0.1,10.0.0.2", ["127.0.0.1", "10.0.0.2"], ["127.0.0.2"]),
        ("127.0.0.1,fe80::1", ["fe80:0:0:0:0:0:0:1"], ["fe80::2"]),
        ("127.0.1-20.*", ["127.0.1.1", "127.0.20.255"], ["127.0.21.1", "127.1.1.1"]),
        ("127.0.0.1-20", ["127.0.0.1", "127.0.0.20"], ["127.0.0.0", "127.0.0.21"]),
        ("127.0.0.*", ["127.0.0.0", "127.0.0.255"], ["127.0.1.0"]),
        (
            "127.*.0.1",
            ["127.9.0.1", "127.9.8.7"],
            ["128.9.0.1"],
        ),  # What follows counts for nothing.
        ("192.168.*.*", ["192.168.3.4"], ["192.169.3.4"]),
        ("fe80:0:0:0:0:0:0:1-9", ["fe80::1", "fe80::9"], ["fe80::a", "fe81::1"]),
        ("fe80::2:*", ["fe80::2:0", "fe80::2:ffff"], ["fe80::3:0"]),
    ],
)
def test_who_is_accepted(text: str | None, inside: list[str], outside: list[str]) -> None:
    matches = addresses(text)
    assert [address for address in inside if not matches(address)] == []
    assert [address for address in [*outside, "", "unknown"] if matches(address)] == (
        ["", "unknown"] if text in ("*", "*.*.*.*", "*:*:*:*:*:*:*:*") else []
    )


@pytest.mark.parametrize(
    "text",
    [
        *("256.0.0.1", "1.2.3", "abc", "1.2.3.4.5", "1.2.{3}.4", "1.2.3.4}", "1.2.{1,2}", "a{1}"),
        *("1.2.3.{300}", "1.2.3.4,x", "1.2.3.9-1", "1.2.3.-5", "1.2.3.1-256", "1.2.3.x-y", "*.2"),
        *("*.1.2.3", "fe80::*:1", "1-2::3:4", "fe80::9-1", "fe80::1-fffff", "fe80::x-y", "1:2}"),
        *("1.2.3.1-", "300.1.2.*", "fe80::-1", "1.2.3.0-0", ":-", "-", "1.2.-.4", "\0", "1.2.3.4 "),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        addresses(text)


@pytest.mark.parametrize("seed", range(10))
def test_any_text_is_refused_or_decides(seed: int) -> None:
    chance = random.Random(seed)
    pieces = ("1", "255", "fe80", "::", ":", ".", "*", "-", "{", "}", ",", " ", "x", "\ud800", "0")
    for _ in range(3000):
        text = "".join(chance.choices(pieces, k=chance.randrange(9)))
        try:
            matches = addresses(text)
        except FormatError:
            continue
        for address in ("1.255.1.1", "fe80::1", "::1", "", "x"):
            assert matches(address) in (True, False)


@pytest.mark.parametrize(
    ("text", "parts", "right"),
    [
        ("::", 8, ":".join(["0000"] * 8)),
        ("::1", 8, ":".join(["0000"] * 7 + ["0001"])),
        ("5::7:6:1-200:*", 8, "0005:0000:0000:0000:0007:0006:1-200:000*"),
        ("5::7:6", 6, "0005:0000:0000:0000:0007:0006"),
        ("1.2.3.4", 8, "1.2.3.4"),
    ],
)
def test_addresses_are_expanded(text: str, parts: int, right: str) -> None:
    assert expanded(text, parts) == right
