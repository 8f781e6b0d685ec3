"""What is asked about lite topics is refused in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from tests import simulated
from tests.broker.admin.asking import refused
from tests.broker.running import running, to

CODES = [code for code in RequestCode if 200_070 <= code <= 200_079]


def test_each_request_is_refused_with_a_reason(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            for code in CODES:
                match = f" request type {code} not supported: this broker has no lite topics"
                answer = await refused(broker, code, match=match)
                assert answer == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    assert len(CODES) == 10
    simulated.run(check())


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ("__LITE_TOPIC\x01chat-1\x02", ResponseCode.MESSAGE_ILLEGAL),
        ("KEYS\x01__LITE_TOPIC\x02", ResponseCode.SUCCESS),
        ("INNER_MULTI_DISPATCH\x01%LMQ%a\x02", ResponseCode.SUCCESS),
    ],
)
def test_a_message_to_a_lite_topic_is_refused(
    tmp_path: Path, properties: str, code: ResponseCode
) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            answer = await broker.send(to("Orders", properties=properties))
            assert answer.code == code
            assert len(broker.records("Orders")) == (code == ResponseCode.SUCCESS)

    simulated.run(check())
