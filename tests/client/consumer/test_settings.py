"""What consumers and their settings refuse before they ask a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlake.client import ClientError, Consumer, ConsumerSettings, PullConsumer


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("earliest", "'first'"),
        ("latest", "'last'"),
        ("beginning", "'last', 'first' or milliseconds since 1970"),
        (None, "'last', 'first' or milliseconds since 1970"),
    ],
)
def test_the_start_of_a_group_by_another_name_is_one_line(given: Any, right: str) -> None:
    with pytest.raises(ClientError) as raised:
        ConsumerSettings(consume_from=given)
    assert str(raised.value) == f"consume_from={given!r}: give {right}"


@pytest.mark.parametrize("given", ["first", "last", 1_700_000_000_000])
def test_starts(given: Any) -> None:
    assert ConsumerSettings(consume_from=given).consume_from == given


@pytest.mark.parametrize("topics", [None, "", [], {}])
def test_a_consumer_without_a_topic_is_one_line(topics: Any) -> None:
    with pytest.raises(ClientError, match=r"^a consumer needs at least one topic$"):
        Consumer("127.0.0.1:1", "g", topics)


def test_settings_as_a_mapping_are_one_line() -> None:
    given: Any = {"in_order": True}
    with pytest.raises(
        ClientError, match=r": give ConsumerSettings, such as ConsumerSettings\(in_"
    ):
        Consumer("127.0.0.1:1", "g", "t", settings=given)


def test_a_topic_instead_of_queues_is_one_line() -> None:
    async def run() -> None:
        topic: Any = "Orders"
        async with PullConsumer("127.0.0.1:1") as consumer:
            consumer.assign(topic)

    with pytest.raises(ClientError, match=r"takes queues, not the topic 'Orders': assign\(await "):
        asyncio.run(run())
