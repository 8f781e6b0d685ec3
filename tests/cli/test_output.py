"""What commands write for programs."""

from __future__ import annotations

import json

import pytest

from mqlake.cli.output import write_json


def test_json_has_no_control_characters(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "".join(map(chr, range(0x180))) + "\u2028日本\x9f\x7f"
    write_json({"topic": text})
    written = capfdbinary.readouterr().out
    assert written.endswith(b"}\n")
    assert not any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in written.decode()[:-1])
    assert json.loads(written) == {"topic": text}
