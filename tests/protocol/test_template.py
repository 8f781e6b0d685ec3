"""Frames made from a template are the frames that the encoder makes."""

from __future__ import annotations

import pytest

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, Serialization, response
from mqlake.protocol.frames import encode
from mqlake.protocol.template import frame_template

GAPS = {"msgId": "%s", "msgIdOf%": "0x%04X", "queueId": "%d"}


@pytest.mark.parametrize("kind", list(Serialization))
@pytest.mark.parametrize("remark", [None, '100 % "of" %s'])
def test_a_filled_template_is_the_encoded_command(kind: int, remark: str | None) -> None:
    asked = Command(310, serialization=kind)
    sample = response(asked, ResponseCode.SUCCESS, {"percent": '100 % "of" %s Ä'}, remark=remark)
    template = frame_template(sample, GAPS)

    for opaque in (0, -1, 2**31 - 1, 1_234_567_890):
        for name in ("", "%d", "a" * 300):
            own = {"msgId": name, "msgIdOf%": "0x00FF", "queueId": "7"}
            whole = response(asked, ResponseCode.SUCCESS, {**sample.fields, **own}, remark=remark)
            whole.opaque = opaque
            assert template.fill(name, 255, 7, opaque) == encode(whole)
