"""Signatures as RocketMQ's clients make them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random

import pytest

from mqlake.protocol.command import Command, request
from mqlake.protocol.signature import (
    ACCESS_KEY,
    SECURITY_TOKEN,
    SIGNATURE,
    Credentials,
    is_signature,
    signature,
    signed,
)


def hmac_sha1(key: bytes, data: bytes) -> str:
    """RFC 2104, written out."""
    key = (hashlib.sha1(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha1(bytes(b ^ 0x36 for b in key) + data).digest()
    outer = hashlib.sha1(bytes(b ^ 0x5C for b in key) + inner).digest()
    return base64.b64encode(outer).decode()


def test_values_are_joined_in_the_order_of_their_names() -> None:
    fields = {"b": "2", "AccessKey": "me", "a": "1", "Signature": "ignored", "": "0"}
    assert signature(fields, b"body", "key", 513) == hmac_sha1(b"key", b"0me12body")


def test_names_are_ordered_as_java_orders_texts() -> None:
    fields = {"\ufffd": "second", "\U00010000": "first"}
    assert signature(fields, b"", "key", 513) == hmac_sha1(b"key", b"firstsecond")


@pytest.mark.parametrize(("version", "content"), [(399, b"1"), (400, b"true1")])
def test_old_clients_do_not_sign_that_a_key_is_unique(version: int, content: bytes) -> None:
    fields = {"_UNIQUE_KEY_QUERY": "true", "a": "1"}
    assert signature(fields, b"", "key", version) == hmac_sha1(b"key", content)


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1_000_000])
def test_bodies_of_every_size_are_signed(size: int) -> None:
    body = bytes(index % 251 for index in range(size))
    expected = hmac_sha1(b"key", b"x" + body)
    for same in (body, bytearray(body), memoryview(body)):
        assert signature({"a": "x"}, same, "key", 513) == expected


def test_texts_that_are_no_unicode_are_signed() -> None:
    assert signature({"a": "\ud800"}, b"", "k\ud800", 513) == hmac_sha1(b"k?", b"?")


def test_a_request_is_signed_and_can_be_signed_again() -> None:
    credentials = Credentials("me", "key", "token")
    plain = request(11, {"topic": "T"}, b"body")
    first = signed(plain, credentials)
    assert plain.fields == {"topic": "T"}
    assert (first.fields[ACCESS_KEY], first.fields[SECURITY_TOKEN]) == ("me", "token")
    expected = signature(first.fields, b"body", "key", first.version)
    assert is_signature(first.fields[SIGNATURE], expected)
    assert signed(first, credentials).fields == first.fields
    assert isinstance(first, Command)


def test_credentials_hide_their_key() -> None:
    assert "hidden" not in repr(Credentials("me", "hidden"))
    for pair in (("", "key"), ("me", "")):
        with pytest.raises(ValueError, match="access key and a secret key"):
            Credentials(*pair)


def test_any_request_has_the_signature_of_the_standard_library() -> None:
    rng = random.Random(3)
    letters = "abcXYZ09_\u00e9\ufffd\U00010000"
    for _ in range(500):
        key = "".join(rng.choices(letters, k=rng.choice((1, 9, 63, 64, 65, 200))))
        fields = {
            "".join(rng.choices(letters, k=rng.randrange(6))): str(rng.randrange(99))
            for _ in range(rng.randrange(12))
        }
        body = rng.randbytes(rng.choice((0, 1, 70_000)))
        names = sorted(fields, key=lambda name: name.encode("utf-16-be"))
        data = "".join(fields[name] for name in names).encode() + body
        right = base64.b64encode(hmac.digest(key.encode(), data, "sha1")).decode()
        assert signature(fields, memoryview(body), key, 513) == right
