"""Bodies may contain anything: each form is limited."""

from __future__ import annotations

import json
import zlib

import msgspec
import pytest

from mqlake.console.messages.bodies import body_start, body_view, decoded, hex_dump
from mqlake.console.page_error import PageError
from mqlake.formats.record import Record
from mqlake.formats.sys_flag import COMPRESSED


def record(body: bytes, flag: int = 0) -> Record:
    plain = Record("t", 0, 0, 0, len(body), 0, 0, 0, 0, "", 0, "", 0, 0, {}, body)
    return msgspec.structs.replace(plain, sys_flag=flag)


def test_json_is_indented_and_text_is_text() -> None:
    view = body_view(record(b'{"a": [1]}'))
    assert view.json == '{\n  "a": [\n    1\n  ]\n}'
    assert view.is_text
    assert body_view(record(b"plain")).json == ""


def test_deep_json_is_not_blown_up() -> None:
    view = body_view(record(b"[" * 900 + b"1," * 30_000 + b"1" + b"]" * 900))
    assert len(view.json) < 400_000
    assert "the rest is not shown" in view.json
    assert body_view(record(b"[" * 60_000)).json == ""


def test_control_characters_are_shown_as_escapes() -> None:
    view = body_view(record(b"\x1b[31m\xff\n"))
    assert view.text == "\\x1b[31m\\xff\n"
    assert not view.is_text


def test_the_begin_of_a_compressed_body_needs_little_memory() -> None:
    body = zlib.compress(b"x" * (64 << 20))
    assert body_start(record(body, COMPRESSED)) == "x" * 160
    assert body_start(record(body[:50], COMPRESSED)) == "x" * 160
    assert body_start(record(b"no zlib", COMPRESSED)) == "no zlib"


def test_a_dump_has_offsets_bytes_and_ascii() -> None:
    line = hex_dump(b"0123456789abcdef\x00")
    assert line.splitlines()[0].endswith("0123456789abcdef")
    assert line.splitlines()[1] == f"00000010  {'00':<47}  ."


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ("avro", ""),
        ("avro", "{"),
        ("avro", '"?"'),
        ("protobuf", "é"),
        ("protobuf", "AAAA"),
        ("x", ""),
    ],
)
def test_a_wrong_schema_is_one_clear_error(form: str, schema: str) -> None:
    with pytest.raises(PageError):
        decoded(json.dumps(1).encode(), form, schema, "M", framed=False)
