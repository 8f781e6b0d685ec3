"""Frames made from a template are the frames that the encoder makes."""

from __future__ import annotations

from mqlake.remoting.codes import ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.frames import encode
from mqlake.remoting.template import FrameTemplate


def test_a_filled_template_is_the_encoded_command() -> None:
    sample = response(Command(310), ResponseCode.SUCCESS, {"percent": '100 % "of" %s'})
    template = FrameTemplate(sample, {"msgId": "%s", "msgIdOf": "0x%04X", "queueId": "%d"})

    for opaque in (0, -1, 2**31 - 1):
        fields = {**sample.fields, "msgId": "Ä%d", "msgIdOf": "0x00FF", "queueId": "7"}
        whole = response(Command(310, opaque), ResponseCode.SUCCESS, fields)
        assert template.fill("Ä%d", 255, 7, opaque) == encode(whole)
