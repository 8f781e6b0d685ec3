"""Configuration files between mqlake and RocketMQ's own classes: loaded and written by turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import QUEUE_TYPE, Topic
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.config_store import ConfigStore
from mqlake.store.live_settings import current
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.peer.rocketmq_store import RocketMQ

pytestmark = pytest.mark.peer

NAMES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json")


def open_config(path: Path) -> ConfigStore:
    return ConfigStore.load(
        LocalOwnedDirectory(path), current(StoreSettings()), ManualClock(1_800_000_000_000)
    )


def tables(config: ConfigStore) -> object:
    offsets = config.consumer_offsets
    return (
        {name: config.topics.get(name) for name in config.topics},
        {name: config.groups.get(name) for name in config.groups},
        {topic: offsets.query_topic("G", topic) for topic in offsets.topics_of("G")},
        (config.topics.version, config.groups.version, offsets.version),
    )


def test_tables_survive_rocketmq(rocketmq: RocketMQ, tmp_path: Path) -> None:
    config = open_config(tmp_path)
    config.topics.put(
        Topic(
            topic_name='键 "quoted" \t \x7f',
            read_queue_nums=3,
            write_queue_nums=5,
            perm=4,
            order=True,
            attributes={QUEUE_TYPE: "BatchCQ"},
        )
    )
    config.topics.ensure("%RETRY%G", 1)
    config.groups.put(
        SubscriptionGroup(
            group_name="G",
            consume_enable=False,
            retry_max_times=3,
            consume_message_orderly=True,
            attributes={"a": "b"},
        )
    )
    config.groups.put(SubscriptionGroup(group_name="H"))
    for queue_id in range(20):
        config.consumer_offsets.commit("G", "T", queue_id, (1 << 62) + queue_id)
    config.consumer_offsets.commit("G", "%RETRY%G", 0, 0)
    config.persist()
    texts = {name: (tmp_path / "config" / name).read_text() for name in NAMES}
    for name in NAMES:
        rocketmq.rewrite_config(tmp_path / "config" / name)
    again = open_config(tmp_path)
    assert tables(again) == tables(config)
    assert (tmp_path / "config" / "subscriptionGroup.json").read_text() == texts[
        "subscriptionGroup.json"
    ], "byte for byte"

    again.topics.ensure("Fresh", 2)
    again.groups.put(SubscriptionGroup(group_name="Fresh"))
    again.consumer_offsets.commit("G", "Fresh", 0, 9)
    again.persist()
    for name in NAMES:
        rocketmq.rewrite_config(tmp_path / "config" / name)
    assert tables(open_config(tmp_path)) == tables(again)
