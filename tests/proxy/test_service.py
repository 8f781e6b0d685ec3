"""What the service answers to methods that its broker does not serve."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.messages import Code, SyncLiteSubscriptionRequest
from tests import simulated
from tests.proxy.serving import named, serving


def test_without_enable_lmq_a_subscription_to_lite_topics_is_not_implemented(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", "LITE")
            group = SubscriptionGroup("g", attributes={"lite.bind.topic": "T"})
            calls.broker.state.groups.put(group)
            request = SyncLiteSubscriptionRequest(
                topic=named("T"), group=named("g"), lite_topic_set=["a"]
            )
            found = await calls.ask("SyncLiteSubscription", request)
            assert found.status.code == Code.NOT_IMPLEMENTED

    simulated.run(run())
