"""Messages are recalled before their delivery time."""

from __future__ import annotations

from pathlib import Path

from mqlake.grpc.messages import Code, MessageType, RecallMessageRequest
from mqlake.protocol.handles.recall import RecallHandle
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.proxy.sending.messages import ID, at, message, send
from tests.proxy.serving import Calls, named, serving
from tests.until import until


async def delayed(calls: Calls, milliseconds: int, body: bytes, number: int) -> str:
    """Send a message; return the handle with which it is recalled."""
    due = at(calls.service.state.now() + milliseconds)
    sent = message(
        "D",
        body,
        message_type=MessageType.DELAY,
        delivery_timestamp=due,
        message_id=f"{ID}{number}",
    )
    found = await calls.ask("SendMessage", send(sent))
    assert found.status.code == Code.OK, found.status.message
    handle: str = found.entries[0].recall_handle
    return handle


def test_a_recalled_message_is_not_delivered(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        settings = {"recallMessageEnable": True, "timerPrecisionMs": 100}
        async with serving(tmp_path, clock=clock, **settings) as calls:
            calls.topic("D", "DELAY", queues=1)
            handle = await delayed(calls, 10_000, b"recalled", 1)
            await delayed(calls, 10_000, b"kept", 2)
            request = RecallMessageRequest(topic=named("D"), recall_handle=handle)
            found = await calls.ask("RecallMessage", request)
            assert (found.status.code, found.message_id) == (Code.OK, f"{ID}1")
            clock.advance(11)
            await until(lambda: calls.broker.records("D"))
            assert [record.body for record in calls.broker.records("D")] == [b"kept"]

    simulated.run(run())


def test_what_cannot_be_recalled_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, recallMessageEnable=True) as calls:
            calls.topic("D", "DELAY", queues=1)
            calls.topic("T")
            elsewhere = RecallHandle("D", "broker-b", 1, ID).text
            conflict = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
            for topic, handle, code in (
                ("T", elsewhere, conflict),
                ("missing", elsewhere, conflict),
                ("D", "no handle", Code.INTERNAL_SERVER_ERROR),
                ("D", elsewhere, Code.BAD_REQUEST),
            ):
                request = RecallMessageRequest(topic=named(topic), recall_handle=handle)
                found = await calls.ask("RecallMessage", request)
                assert found.status.code == code, (topic, handle)

    simulated.run(run())
