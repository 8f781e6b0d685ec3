"""Who may use one group with lite topics takes nothing from the clients of another one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqlake.broker.lite.pops import LitePops
from mqlake.errors import DiskError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.lite import PopLiteHeader
from tests import simulated
from tests.broker.lite.lites import (
    GROUP,
    LiteClient,
    lite_broker,
    make_group,
    pop_header,
    popped,
    send,
    subscription_change,
)
from tests.broker.running import PATIENCE, Running

LONG = 2 * int(PATIENCE * 1000)


def test_a_pop_under_the_id_of_another_groups_client_takes_no_news(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            make_group(broker, "others")
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            await send(broker, "a", "a0")
            assert await LiteClient(broker, group="others").bodies() == []
            assert await client.bodies() == ["a0"]

    simulated.run(check())


def test_a_pop_under_the_id_of_another_groups_client_holds_up_nobody(tmp_path: Path) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            make_group(broker, "others")
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a")
            forged = LiteClient(broker, group="others")
            waiting = [asyncio.create_task(each.pop(poll=LONG)) for each in (forged, client)]
            await asyncio.sleep(1)
            await send(broker, "a", "a0")
            ((record, _),) = popped(await waiting[1])
            assert record.body == b"a0"
            waiting[0].cancel()

    simulated.run(check())


@pytest.mark.parametrize("action", ["COMPLETE_REMOVE", "PARTIAL_ADD", "COMPLETE_ADD"])
def test_changes_of_another_group_end_no_subscriptions(tmp_path: Path, action: str) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            make_group(broker, "others")
            client, other = LiteClient(broker), Running(broker.broker)
            await client.change("PARTIAL_ADD", "a")
            body = subscription_change(action, client.client_id, "others", "b")
            answer = await other.ask(RequestCode.LITE_SUBSCRIPTION_CTL, body=body)
            is_refused = answer.code == ResponseCode.ILLEGAL_OPERATION
            assert is_refused == (action != "COMPLETE_REMOVE")
            await send(broker, "a", "a0")
            assert await client.bodies() == ["a0"]
            # The client itself may leave its group.
            taken = await LiteClient(broker, group="others").change(action, "b")
            assert taken.code == ResponseCode.SUCCESS
            await other.client.close()

    simulated.run(check())


def test_a_lite_topic_that_cannot_be_read_hides_no_messages_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with lite_broker(tmp_path) as broker:
            client = LiteClient(broker)
            await client.change("PARTIAL_ADD", "a", "b")
            for lite in ("a", "b"):
                await send(broker, lite, lite)
            real = LitePops._pop_queue

            def pop_queue(self: LitePops, header: PopLiteHeader, queue: str, *more: int) -> object:
                if queue.endswith("b"):
                    raise DiskError("not now")
                return real(self, header, queue, *more)

            with monkeypatch.context() as patch:
                patch.setattr(LitePops, "_pop_queue", pop_queue)
                assert await client.bodies() == ["a"]
                now = broker.state.store.clock.milliseconds()
                header = pop_header(client.client_id, GROUP, now, poll=0, invisible=60_000)
                answer = await broker.ask(RequestCode.POP_LITE_MESSAGE, header)
                assert answer.code == ResponseCode.SYSTEM_ERROR
            assert await client.bodies() == ["b"]

    simulated.run(check())
