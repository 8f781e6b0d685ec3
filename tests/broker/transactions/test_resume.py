"""Half messages that nobody answered for are checked again when an operator asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.message_id import encode_message_id
from mqlake.formats.properties import encode_properties
from mqlake.formats.topic_names import DISCARDED_TOPIC, HALF_TOPIC
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.transactions import ResumeCheckHeader
from mqlake.store.append.message import Message
from tests import simulated
from tests.broker.admin.asking import done, refused
from tests.broker.running import Running, running

HALF = {
    "REAL_TOPIC": "Orders",
    "REAL_QID": "1",
    "TRAN_MSG": "true",
    "PGROUP": "producers",
    "TRANSACTION_CHECK_TIMES": "15",
}
CODE = RequestCode.RESUME_CHECK_HALF_MESSAGE


def put(broker: Running, topic: str, properties: dict[str, str]) -> ResumeCheckHeader:
    """Put a message; return what would have it checked again."""
    message = Message(topic=topic, body=b"half", encoded_properties=encode_properties(properties))
    result = broker.state.store.core.puts.put(message)
    assert result.count
    host = bytes((127, 0, 0, 1)) + (10911).to_bytes(4)
    return ResumeCheckHeader(topic=topic, msg_id=encode_message_id(host, result.physical_offset))


def test_a_half_that_was_given_up_is_checked_from_the_start(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            header = put(broker, DISCARDED_TOPIC, HALF)
            await done(broker, CODE, header)
            (again,) = broker.records(HALF_TOPIC)
            assert again.body == b"half"
            expected = HALF | {"TRANSACTION_CHECK_TIMES": "0"}
            assert expected.items() <= again.properties.items()

    simulated.run(check())


@pytest.mark.parametrize(
    ("topic", "properties"),
    [("Orders", HALF), (DISCARDED_TOPIC, {}), (DISCARDED_TOPIC, {"PGROUP": "producers"})],
)
def test_what_is_no_half_message_is_refused(
    tmp_path: Path, topic: str, properties: dict[str, str]
) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await refused(broker, CODE, put(broker, topic, properties), match="not a half message")
            assert broker.records(HALF_TOPIC) == []

    simulated.run(check())


@pytest.mark.parametrize("message_id", ["", "x", "7F00000100002A9F7FFFFFFFFFFFFFFF", "F" * 32])
def test_an_id_of_no_message_is_refused(tmp_path: Path, message_id: str) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            header = ResumeCheckHeader(msg_id=message_id or None)
            await refused(broker, CODE, header, match=f"msgId {message_id}")

    simulated.run(check())
