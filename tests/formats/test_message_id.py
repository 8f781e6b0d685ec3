"""Message ids: Java's own, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given

from mqlake.errors import FormatError
from mqlake.formats.host import encode_host
from mqlake.formats.message_id import UniqueKey, decode_message_id, encode_message_id
from tests.formats.golden_log import messages
from tests.formats.strategies import HOSTS, LONG


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean"])
def test_offset_ids_of_java(name: str) -> None:
    for message in messages(name):
        host, offset = message["storeHost"][1:], message["physicalOffset"]
        assert decode_message_id(message["offsetMsgId"]) == (host, offset)
        assert encode_message_id(encode_host(host), offset) == message["offsetMsgId"]


@given(HOSTS, LONG)
def test_offset_id_round_trip(host: str, offset: int) -> None:
    text = encode_message_id(encode_host(host), offset)
    assert decode_message_id(text) == decode_message_id(text.lower()) == (host, offset)


def test_unique_keys_of_java_producers() -> None:
    made = [m["uniqKey"] for m in messages("rmq5-clean") if len(m["uniqKey"] or "") == 56]
    assert len(made) > 100
    for text in made:
        key = UniqueKey.parse(text)
        assert key.text() == text
        assert len(key.ip) == 16
        assert key.milliseconds < 31 * 24 * 3600 * 1000


def test_parts_of_a_unique_key() -> None:
    # MessageClientIDSetter says of this one: pid 16167, address fd00::2.
    key = UniqueKey.parse("FD0000000000000000000000000000023F271DBD16A669015A940001")
    assert key == (b"\xfd" + bytes(14) + b"\x02", 16167, 0x1DBD16A6, 0x69015A94, 1)


@pytest.mark.parametrize(
    "text", ["", "0" * 31, "0" * 33, "G" * 32, "0" * 54, "0" * 58, "\u0660" * 32]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        decode_message_id(text)
    with pytest.raises(FormatError):
        UniqueKey.parse(text)


def test_other_hosts_are_refused() -> None:
    with pytest.raises(FormatError):
        encode_message_id(b"1234567", 0)
