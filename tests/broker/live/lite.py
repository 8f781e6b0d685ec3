"""Limits of lite topics."""

from __future__ import annotations

from mqlake.protocol.codes import ResponseCode
from tests.broker.lite.lites import LiteClient, make_group, send
from tests.broker.live.observing import change, observes
from tests.broker.running import Running


@observes("maxLmqConsumeQueueNum", enableLmq=True)
async def lite_topics(broker: Running) -> None:
    assert (await send(broker, "a", "x")).code == ResponseCode.SUCCESS
    assert (await send(broker, "b", "x")).code == ResponseCode.SUCCESS
    await change(broker, maxLmqConsumeQueueNum=2)
    assert "maxLmqConsumeQueueNum" in ((await send(broker, "c", "x")).remark or "")


@observes("maxLiteSubscriptionCount", enableLmq=True)
async def lite_subscriptions(broker: Running) -> None:
    make_group(broker, "agents")
    client = LiteClient(broker)
    assert (await client.change("PARTIAL_ADD", "a", "b")).code == ResponseCode.SUCCESS
    await change(broker, maxLiteSubscriptionCount=2)
    answer = await client.change("PARTIAL_ADD", "c")
    assert "maxLiteSubscriptionCount" in (answer.remark or "")
