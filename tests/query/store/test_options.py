"""Options are Spark's Kafka source's, and errors name what was meant."""

from __future__ import annotations

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.query.reading.limits import Limit
from mqlake.query.reading.queue_json import offsets, queues
from mqlake.query.store.options import StoreReadOptions, read_options
from tests.golden import store
from tests.query.store.rows import batch_rows, options_of


def batch(**options: str) -> StoreReadOptions:
    return read_options({"path": "store", **options}, streaming=False)


def stream(**options: str) -> StoreReadOptions:
    return read_options({"path": "store", **options}, streaming=True)


def test_defaults() -> None:
    assert batch().starting == Limit(None, None, None, "earliest")
    assert stream().starting == Limit(None, None, None, "latest")
    assert batch().ending == Limit(None, None, None, "latest")
    assert batch().fail_on_data_loss
    assert batch().max_trigger_delay == 15 * 60_000
    assert not batch().latest_if_none


def test_timestamps_come_before_offsets() -> None:
    given = {
        "startingOffsets": '{"T": {"0": 7}}',
        "startingOffsetsByTimestamp": '{"T": {"0": 5}}',
        "startingTimestamp": "3",
    }
    assert batch(**given).starting == Limit(3, None, None, "earliest")
    del given["startingTimestamp"]
    assert batch(**given).starting == Limit(None, {("T", 0): 5}, None, "earliest")
    del given["startingOffsetsByTimestamp"]
    assert batch(**given).starting == Limit(None, None, {("T", 0): 7}, "earliest")


def test_names_in_any_case_and_old_names() -> None:
    options = batch(TOPIC="A, B", SubExpression="X || Y", failondataloss="FALSE")
    assert options.topics == ("A", "B")
    assert options.tags == ("X", "Y")
    assert not options.fail_on_data_loss


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribes": "A"}, "there is no option 'subscribes'; the nearest is subscribe"),
        ({"maxoffsets": "1"}, "the nearest is maxOffsetsPerTrigger"),
        (
            {"accessPath": "que"},
            "'que' is not one of auto, scan, queues, index, points; the nearest is q",
        ),
        ({"failOnDataLoss": "yes"}, "option failOnDataLoss: 'yes' is not one of true, false"),
        ({"columns": "topics"}, "there is no column 'topics'; the nearest is topic"),
        ({"columns": "topic,TOPIC"}, "named twice"),
        ({"columns": "body", "includeBody": "false"}, "no column left"),
        ({"minPartitions": "0"}, "'0' is not an integer of at least 1"),
        ({"minPartitions": "9" * 30}, "is not an integer"),
        ({"startingOffsets": "latest"}, "a batch query cannot start at the latest"),
        ({"startingOffsets": "newest"}, "'newest' is not earliest or latest, or JSON"),
        ({"startingOffsets": '{"T": {"0": -1}}'}, "T-0: a batch query cannot start at the latest"),
        ({"endingOffsets": '{"T": {"0": -2}}'}, "T-0: a batch query cannot end at the earliest"),
        ({"startingOffsets": '{"T": {"0": -3}}'}, "is not offsets as JSON"),
        ({"startingOffsets": '{"T": {"0": 1.5}}'}, "is not offsets as JSON"),
        ({"startingOffsets": '{"T": [1]}'}, "is not offsets as JSON"),
        ({"startingOffsets": "{" * 10_000}, "is not offsets as JSON"),
        ({"assign": '{"T": [-1]}'}, "is not queues as JSON"),
        ({"assign": "{}"}, "is not queues as JSON"),
        ({"assign": '{"T": {"a": [0], "b": [0]}}'}, "about one broker only"),
        ({"subscribe": "A", "assign": '{"A": [0]}'}, "assign and subscribe cannot be combined"),
        ({"subscribe": "A", "topic": "B"}, "subscribe and topic are the same"),
        ({"subscribePattern": "("}, "is not a regular expression"),
        ({"maxTriggerDelay": "5 weeks"}, "is not a duration"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is above"),
        (
            {"startingOffsets": '{"T": {"0": 9}}', "endingOffsets": '{"T": {"0": 8}}'},
            "T-0 would start at 9, after its end at 8",
        ),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        batch(**options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_path_and_a_stream_with_an_end() -> None:
    with pytest.raises(FormatError, match="option path is missing"):
        read_options({})
    with pytest.raises(FormatError, match="endingOffsets: a streaming query has no end"):
        stream(endingOffsets="latest")


def test_options_that_mean_nothing_are_told() -> None:
    assert batch(pullBatchSize="32", maxOffsetsPerTrigger="5").ignored == (
        "pullBatchSize",
        "maxOffsetsPerTrigger",
    )


def test_json_by_broker() -> None:
    assert offsets('{"T": {"broker-a": {"0": 23, "1": -1}}}') == {("T", 0): 23, ("T", 1): -1}
    assert queues('{"T": {"broker-a": [0, 2]}, "U": [1]}') == (("T", 0), ("T", 2), ("U", 1))


def test_offsets_and_times_choose_by_queue() -> None:
    path = store("rmq5-clean").path
    rows = batch_rows(path, includeBody=False)
    topic = "TopicA"
    queue = [row for row in rows if (row["topic"], row["queueId"]) == (topic, 1)]

    def found(**options: object) -> list[int]:
        chosen = batch_rows(path, assign='{"TopicA": [1]}', includeBody=False, **options)
        return [row["queueOffset"] for row in chosen]

    every = [row["queueOffset"] for row in queue]
    first, last = '{"TopicA": {"1": 10}}', '{"TopicA": {"1": 20}}'
    assert found(startingOffsets=first, endingOffsets=last) == every[10:20]
    time = queue[30]["storeTimestamp"]
    after = [row["queueOffset"] for row in queue if row["storeTimestamp"] >= time]
    assert found(startingTimestamp=time) == after
    assert found(endingOffsetsByTimestamp=f'{{"TopicA": {{"1": {time}}}}}') == every[: after[0]]
    assert found(startingTimestamp=1 << 60, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(StoreError, match="TopicA-1: no message is from"):
        found(startingTimestamp=1 << 60)
    everywhere = batch_rows(path, startingTimestamp=time, includeBody=False)
    assert [row["physicalOffset"] for row in everywhere] == [
        row["physicalOffset"]
        for row in rows
        if row["sysFlag"] & 12 in (0, 8) and row["storeTimestamp"] >= time
    ], "topics whose messages are all older do not matter"
    too_far = '{"TopicA": {"1": 99999}}'
    with pytest.raises(StoreError, match=r"TopicA-1 has offsets 0 to \d+, not 99999"):
        found(startingOffsets=too_far)
    assert found(endingOffsets=too_far, failOnDataLoss=False) == every
    with pytest.raises(FormatError, match="TopicB-0, which is not subscribed to"):
        found(startingOffsets='{"TopicB": {"0": 1}}')


def test_options_are_pickled_with_readers() -> None:
    import pickle

    options = options_of("store", assign='{"T": [0]}', keys="a b")
    assert pickle.loads(pickle.dumps(options)) == options
