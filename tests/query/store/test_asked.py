"""A batch query that names what is not there is an error, or empty if that is tolerated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from tests.golden import store
from tests.query.store.rows import batch_rows

CASES = [
    ({"subscribe": "TopicA,Nowhere"}, "topic 'Nowhere' does not exist"),
    ({"assign": '{"Nowhere":[0]}'}, "topic 'Nowhere' does not exist"),
    ({"assign": '{"TopicA":[0,999]}'}, "topic 'TopicA' has no queue 999"),
    ({"subscribePattern": "Topic[xyz]"}, "no topic matches 'Topic\\[xyz\\]'"),
]


@pytest.mark.parametrize(("options", "reason"), CASES)
def test_what_is_not_there_is_an_error(options: dict[str, str], reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        batch_rows(store("rmq5-clean").path, **options)


@pytest.mark.parametrize(("options", "_reason"), CASES)
def test_what_is_not_there_may_be_tolerated(options: dict[str, str], _reason: str) -> None:
    rows = batch_rows(store("rmq5-clean").path, **options, failOnDataLoss=False)
    assert {row["topic"] for row in rows} <= {"TopicA"}


def test_a_topic_without_messages_is_empty(tmp_path: Path) -> None:
    copy = store("rmq5-clean").copy(tmp_path / "copy")
    path = copy / "config" / "topics.json"
    config = json.loads(path.read_text())
    config["topicConfigTable"]["Fresh"] = {"topicName": "Fresh", "readQueueNums": 2}
    path.write_text(json.dumps(config))
    assert batch_rows(copy, subscribe="Fresh") == []
    assert batch_rows(copy, assign='{"Fresh":[1]}') == []


def test_a_log_without_anything_else_has_its_topics(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    bare = tmp_path / "bare"
    shutil.copytree(golden.path / "commitlog", bare / "commitlog")
    assert len(batch_rows(bare, subscribe="TopicA")) == len(
        batch_rows(golden.path, subscribe="TopicA")
    )
    assert batch_rows(bare, subscribePattern="Topic[AB]")
    with pytest.raises(StoreError, match="topic 'Nowhere' does not exist"):
        batch_rows(bare, subscribe="Nowhere")


def test_system_topics_may_be_left_out() -> None:
    path = store("rmq5-clean").path
    everything = {row["topic"] for row in batch_rows(path, columns="topic,physicalOffset")}
    found = {
        row["topic"] for row in batch_rows(path, columns="topic,physicalOffset", systemTopics=False)
    }
    assert everything - found == {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
    named = batch_rows(path, subscribe="SCHEDULE_TOPIC_XXXX", systemTopics=False)
    assert {row["topic"] for row in named} == {"SCHEDULE_TOPIC_XXXX"}
