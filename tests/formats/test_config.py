"""The configuration files: RocketMQ's own, the backup, every field."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import config
from mqlake.formats.config import KINDS, Config, load, load_config
from mqlake.formats.config.metrics import Metric
from mqlake.formats.config.subscription_group import CustomizedRetryPolicy, GroupRetryPolicy
from tests.formats.golden_log import golden, messages


def reader(name: str) -> config.Read:
    folder = golden(name).path / "config"
    return lambda file: (folder / file).read_bytes() if (folder / file).exists() else None


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_topics_of_a_store(name: str) -> None:
    topics = load(reader(name), config.Topics)
    assert topics is not None
    for topic, settings in topics.topic_config_table.items():
        assert settings.topic_name == topic
    topic = topics.topic_config_table["TopicB"]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (8, 8, 6)
    assert topics.data_version.counter > 0
    stored = {m["topic"] for m in messages(name)} - {"SCHEDULE_TOPIC_XXXX"}
    assert {"TopicA", "TopicTx", "TopicBatch"} <= stored & set(topics.topic_config_table)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_offsets_of_a_store_do_not_pass_its_queues(name: str) -> None:
    offsets = load(reader(name), config.ConsumerOffsets)
    assert offsets is not None
    queues = {
        (queue["topic"], queue["queueId"]): queue["maxOffset"]
        for queue in golden(name).queries()["queues"]
    }
    seen = 0
    for topic_at_group, table in offsets.offset_table.items():
        topic, _, _group = topic_at_group.partition("@")
        for queue_id, offset in table.items():
            assert 0 <= offset <= queues.get((topic, queue_id), 0)
            seen += 1
    assert seen >= 20


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_other_files_of_a_store(name: str) -> None:
    groups = load(reader(name), config.SubscriptionGroups)
    delays = load(reader(name), config.DelayOffsets)
    assert groups is not None
    assert delays is not None
    assert groups.subscription_group_table["G_retry"].retry_max_times == 16
    assert groups.subscription_group_table["G_retry"].group_retry_policy.type == "CUSTOMIZED"
    assert set(delays.offset_table) >= {1, 2}
    assert load(reader(name), config.ConsumerFilters) == config.ConsumerFilters()


def test_files_of_a_store_of_rocketmq_5() -> None:
    metrics = load(reader("rmq5-clean"), config.TransactionMetrics)
    assert metrics is not None
    assert metrics.transaction_count == {"TopicTx": Metric(-2, 1795206887469)}
    timer = load(reader("rmq5-default"), config.TimerMetrics)
    assert timer is not None
    assert timer.timing_count == {}
    assert load(reader("rmq5-clean"), config.ConsumerOrderInfos) == config.ConsumerOrderInfos()


@pytest.mark.parametrize("file", KINDS)
def test_a_missing_empty_or_damaged_file_gives_its_backup(file: str) -> None:
    backup = b"{}"
    for content in (None, b"", b"{", b"[]"):
        files = {file: content, file + ".bak": backup}
        assert load_config(files.get, file) == KINDS[file]()
        with_no_backup = {file: content}
        if content:
            with pytest.raises(FormatError, match=f"config/{file}: "):
                load_config(with_no_backup.get, file)
        else:
            assert load_config(with_no_backup.get, file) is None


def test_both_damaged_names_the_first() -> None:
    files = {"topics.json": b"{", "topics.json.bak": b"["}
    with pytest.raises(FormatError, match=r"config/topics\.json: "):
        load_config(files.get, "topics.json")


def test_a_good_file_needs_no_backup() -> None:
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return b"{}"

    load_config(read, "topics.json")
    assert asked == ["topics.json"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(FormatError, match="known"):
        load_config(lambda name: b"{}", "../passwd")


def decode(kind: type[Config], text: str) -> object:
    return config.decode(text.encode(), kind)


def test_unknown_fields_are_ignored_and_null_is_absent() -> None:
    topics = decode(
        config.Topics, '{"new":[1],"topicConfigTable":{"T":{"perm":4,"attributes":null,"x":1}}}'
    )
    assert isinstance(topics, config.Topics)
    assert topics.topic_config_table["T"].perm == 4
    assert topics.topic_config_table["T"].attributes == {}
    assert topics.topic_config_table["T"].read_queue_nums == 16


@pytest.mark.parametrize(
    "text", ["[]", "1", '{"topicConfigTable":[]}', '{"topicConfigTable":{"T":{"perm":"six"}}}']
)
def test_wrong_types_are_damage(text: str) -> None:
    with pytest.raises(FormatError):
        decode(config.Topics, text)


def test_a_table_without_a_version_has_version_0() -> None:
    topics = decode(config.Topics, "{}")
    assert isinstance(topics, config.Topics)
    assert topics.data_version == config.DataVersion(0, 0, 0)


def test_integer_keys_may_be_quoted() -> None:
    for text in ('{"offsetTable":{1:40}}', '{"offsetTable":{"1":"40"}}'):
        delays = decode(config.DelayOffsets, text)
        assert isinstance(delays, config.DelayOffsets)
        assert delays.offset_table == {1: 40}


def test_retry_policies() -> None:
    groups = decode(
        config.SubscriptionGroups,
        '{"subscriptionGroupTable":{"g":{"groupRetryPolicy":{"customizedRetryPolicy":'
        '{"next":[1000,5000]}},"subscriptionDataSet":[{"topic":"t","version":3}]}},'
        '"forbiddenTable":{"g":{"t":1}}}',
    )
    assert isinstance(groups, config.SubscriptionGroups)
    group = groups.subscription_group_table["g"]
    assert group.group_retry_policy == GroupRetryPolicy(
        customized_retry_policy=CustomizedRetryPolicy([1000, 5000])
    )
    assert group.subscription_data_set[0].version == 3
    assert groups.forbidden_table == {"g": {"t": 1}}


def test_order_infos() -> None:
    infos = decode(
        config.ConsumerOrderInfos,
        '{"table":{"t@g":{0:{"popTime":5,"i":60000,"o":[7,1,2],"ot":{8:99},"oc":{7:1},"l":4,'
        '"cm":3,"a":"x"}}}}',
    )
    assert isinstance(infos, config.ConsumerOrderInfos)
    info = infos.table["t@g"][0]
    assert (info.pop_time, info.invisible_time, info.offsets) == (5, 60000, [7, 1, 2])
    assert (info.next_visible_times, info.consumed_counts) == ({8: 99}, {7: 1})
    assert (info.last_consume_timestamp, info.commit_offset_bit, info.attempt_id) == (4, 3, "x")


def test_static_topics() -> None:
    mappings = decode(
        config.TopicQueueMappings,
        '{"topicQueueMappingInfoMap":{"t":{"topic":"t","totalQueues":2,"bname":"b","epoch":9,'
        '"currIdMap":{0:0},"hostedQueues":{0:[{"gen":1,"queueId":0,"bname":"b","logicOffset":5}]}}}}',
    )
    assert isinstance(mappings, config.TopicQueueMappings)
    mapping = mappings.topic_queue_mapping_info_map["t"]
    assert (mapping.total_queues, mapping.epoch, mapping.curr_id_map) == (2, 9, {0: 0})
    assert mapping.hosted_queues[0][0].logic_offset == 5
    assert mapping.hosted_queues[0][0].end_offset == -1


def test_filters() -> None:
    filters = decode(
        config.ConsumerFilters,
        '{"filterDataByTopic":{"t":{"topic":"t","groupFilterData":{"g":{"consumerGroup":"g",'
        '"expression":"a > 1","expressionType":"SQL92","bornTime":1,"deadTime":2,'
        '"bloomFilterData":{"bitPos":[3,9],"bitNum":64}}}}}}',
    )
    assert isinstance(filters, config.ConsumerFilters)
    data = filters.filter_data_by_topic["t"].group_filter_data["g"]
    assert (data.expression, data.born_time, data.dead_time) == ("a > 1", 1, 2)
    assert data.bloom_filter_data is not None
    assert data.bloom_filter_data.bit_pos == [3, 9]


def test_modes_and_light_queues() -> None:
    modes = decode(
        config.MessageRequestModes,
        '{"messageRequestModeMap":{"t":{"g":{"mode":"POP","popShareQueueNum":2}}}}',
    )
    assert isinstance(modes, config.MessageRequestModes)
    assert modes.message_request_mode_map["t"]["g"].mode == "POP"
    light = decode(config.LmqConsumerOffsets, '{"lmqOffsetTable":{"%LMQ%t@g":12}}')
    assert isinstance(light, config.LmqConsumerOffsets)
    assert light.lmq_offset_table == {"%LMQ%t@g": 12}


@given(st.sampled_from(list(KINDS)), st.binary())
def test_any_bytes_give_a_value_or_a_format_error(file: str, data: bytes) -> None:
    with contextlib.suppress(FormatError):
        load_config(lambda name: data, file)
