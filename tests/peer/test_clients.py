"""Stock Java clients, the newest 5.x and the newest 4.9.x, do all they can with mqlake's broker.

Each feature is a class in `rocketmq_client/`; what happened there is judged here. The nightly run
does the same with the real broker: it shows that the features ask for the right things.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqlake.testing import broker
from tests.peer.client_features import EXAMPLES, SETTINGS, run, run_examples
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_client import NEWEST, NEWEST_4, Clients
from tests.peer.rocketmq_cluster import Cluster
from tests.store.record_crcs import check_crcs

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(600),
]

Answers = dict[str, dict[str, Any]]
Message = dict[str, Any]

SIDES = [
    pytest.param(("mqlake", NEWEST), id="5.x"),
    pytest.param(("mqlake", NEWEST_4), id="4.9.x"),
    pytest.param(("rocketmq", NEWEST), id="5.x-rocketmq", marks=pytest.mark.nightly),
]
SUBSCRIPTION_PARSE_FAILED, INVALID_PARAMETER = 23, 29
LEAST_RECORDS = 100
TIMER_PRECISION = 1000
"""Milliseconds by which RocketMQ's timers may be early."""


@pytest.fixture(scope="module")
def on_mqlake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """What happened with mqlake, by release; both at the same time, since they mostly wait."""
    versions = (NEWEST, NEWEST_4)
    places = [tmp_path_factory.mktemp("clients") for _ in versions]
    with ThreadPoolExecutor(len(versions)) as threads:
        found = threads.map(run_on, ["mqlake"] * len(versions), versions, places)
        return dict(zip(versions, found, strict=True))


@pytest.fixture(scope="module", params=SIDES)
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What happened in each feature; all of them run at the same time."""
    side, version = request.param
    try:
        if side == "mqlake":
            return request.getfixturevalue("on_mqlake")[version]
        return run_on(side, version, tmp_path_factory.mktemp("clients"))
    except JavaMissingError as reason:
        pytest.skip(f"without stock clients: {reason}")


def run_on(side: str, version: str, directory: Path) -> Answers:
    clients = Clients(directory, version)
    try:
        if side == "mqlake":
            return run_on_mqlake(clients, version, directory)
        cluster = Cluster(directory, directory / "store", SETTINGS)
        cluster.start()
        try:
            return run(clients, version, cluster.names, cluster.broker)
        finally:
            cluster.kill()
    finally:
        clients.close()


def run_on_mqlake(clients: Clients, version: str, directory: Path) -> Answers:
    with broker(directory / "store", **SETTINGS) as running:
        found = run(clients, version, running.name_server, running.address)
        if version == NEWEST:
            found["examples"] = dict(run_examples(clients, running.name_server))
    # Retries, delays, transactions and receipts of pop among them: none has an older CRC left.
    assert check_crcs(directory / "store") > LEAST_RECORDS
    return found


def happened(answers: Answers, feature: str) -> dict[str, Any]:
    if feature not in answers:
        pytest.skip("clients of this release cannot")
    assert "failure" not in answers[feature], answers[feature]["failure"]
    return answers[feature]


def numbered(*words: str, count: int) -> list[str]:
    return sorted(f"{word} {number}" for word in words for number in range(count))


def bodies(messages: list[Message]) -> list[str]:
    return [message["body"] for message in messages]


def test_every_way_to_send(answers: Answers) -> None:
    found = happened(answers, "send")
    for way in ("sync", "async", "batch", "selected", "large"):
        assert {result["status"] for result in found[way]} == {"SEND_OK"}, way
    assert {result["queue"] for result in found["selected"]} == {3}
    assert len({result["queue"] for result in found["sync"]}) > 1, "queues are used in turn"
    assert len(found["batch"][0]["msgId"].split(",")) == 8
    consumed = {message["body"]: message for message in found["consumed"]}
    large = "large " * 2000
    words = ("sync", "async", "oneway", "batch", "selected")
    assert sorted(consumed) == sorted([*numbered(*words, count=8), large])
    assert len(found["consumed"]) == len(consumed), "nothing comes twice"
    ids = {result["msgId"]: result for result in found["sync"]}
    for number in range(8):
        message = consumed[f"sync {number}"]
        properties = message["properties"]
        assert properties["TAGS"] == f"Tag{number}"
        assert properties["KEYS"] == f"key{number}"
        assert properties["colour"] == "blue"
        result = ids[message["msgId"]]
        assert (message["queue"], message["offset"]) == (result["queue"], result["offset"])
    offsets = [consumed[f"batch {number}"]["offset"] for number in range(8)]
    assert offsets == list(range(offsets[0], offsets[0] + 8)), "a batch stays together"


def test_consumers_that_come_and_go_share_the_queues(answers: Answers) -> None:
    found = happened(answers, "rebalance")
    assert found["alone"] == 4
    first, second = found["first"], found["second"]
    together = [message for message in first if message["body"].startswith("together")]
    assert {message["queue"] for message in second}.isdisjoint(
        {message["queue"] for message in together}
    )
    assert {message["body"] for message in [*first, *second]} == set(
        numbered("alone", "together", count=40)
    )
    assert {m["body"] for m in second if m["body"].startswith("together")}, "both had work"
    assert set(numbered("again", count=40)) <= set(found["last"])


def test_each_broadcasting_consumer_gets_everything(answers: Answers) -> None:
    found = happened(answers, "broadcasting")
    assert sorted(found["first"]) == sorted(found["second"]) == numbered("to all", count=20)


@pytest.mark.parametrize(("feature", "each"), [("ordered", 10), ("ordered globally", 20)])
def test_order_is_kept_and_a_refusal_holds_the_queue(
    answers: Answers, feature: str, each: int
) -> None:
    queues: dict[int, list[Message]] = defaultdict(list)
    for message in happened(answers, feature)["consumed"]:
        queues[message["queue"]].append(message)
    shards: dict[str, list[int]] = defaultdict(list)
    for messages in queues.values():
        offsets = [message["offset"] for message in messages]
        assert all(later in (before, before + 1) for before, later in pairwise(offsets))
        for message in messages:
            shard, number = message["body"].split()
            shards[shard].append(int(number))
    for numbers in shards.values():
        assert list(dict.fromkeys(numbers)) == list(range(each))
        assert numbers.count(3) >= 2, "the refused message came again, before the next"


def test_delays(answers: Answers) -> None:
    found = happened(answers, "delay")
    came = [each for each in found["consumed"] if each["body"] not in found["overdue"]]
    consumed = {message["body"]: message for message in came}
    assert len(came) == len(consumed) == 6, "each is delivered once"
    assert len(set(found["recalled"])) <= 1, "what is taken back is what was sent"
    least = {"level 0": 0, "level 1": 1000, "level 2": 5000}
    timers = {"TIMER_DELAY_MS": 3500, "TIMER_DELAY_SEC": 4000, "TIMER_DELIVER_MS": 4400}
    least |= {body: delay - TIMER_PRECISION for body, delay in timers.items()}
    for sent in found["sent"]:
        body = sent["body"]
        assert sent["status"] == "SEND_OK"
        assert consumed[body]["at"] - sent["at"] >= least[body], body


def test_transactions(answers: Answers) -> None:
    found = happened(answers, "transactions")
    assert set(found["states"]) == {
        "SEND_OK COMMIT_MESSAGE",
        "SEND_OK ROLLBACK_MESSAGE",
        "SEND_OK UNKNOW",
    }
    assert set(found["checked"]) >= set(numbered("late commit", "late rollback", count=3))
    wanted = [*numbered("commit", "late commit", count=3), "last"]
    assert set(found["consumed"]) == set(wanted), "what was rolled back never comes"


def test_what_fails_comes_again_and_then_goes_to_the_dead_letters(answers: Answers) -> None:
    found = happened(answers, "retry")
    times: dict[str, list[int]] = defaultdict(list)
    for message in found["attempts"]:
        times[message["body"]].append(message["times"])
    assert times == {"good": [0], "once": [0, 1], "never": [0, 1, 2]}
    assert len({m["topic"] for m in found["attempts"]}) == 1, "the client shows the first topic"
    # A client whose broker takes nothing back sends a message of its own instead.
    born = {(m["body"], m["born"]) for m in [*found["attempts"], *found["dead"]]}
    assert len(born) == 3, "what comes again is the message that was given back"
    (letter,) = found["dead"]
    assert letter["body"] == "never"
    assert letter["topic"].startswith("%DLQ%G_")
    never = next(message for message in found["attempts"] if message["body"] == "never")
    assert letter["properties"]["RETRY_TOPIC"] == never["topic"]


def test_request_and_reply(answers: Answers) -> None:
    found = happened(answers, "request and reply")
    assert (found["sync"], found["async"]) == ("reply to sync", "reply to async")


def test_tags_select(answers: Answers) -> None:
    found = happened(answers, "tags")["consumed"]
    assert sorted(found) == numbered("TagA", "TagC", count=10)


def test_sql_selects_and_a_wrong_expression_is_refused(answers: Answers) -> None:
    found = happened(answers, "sql")
    assert sorted(found["consumed"]) == ["TagA 3", "TagA 5", "TagB 3", "TagB 5"]
    assert found["refused"] == SUBSCRIPTION_PARSE_FAILED


def test_lite_pull(answers: Answers) -> None:
    found = happened(answers, "lite pull")
    assert sorted(found["first"]) == numbered("old", count=40)
    assert found["committed"] == [10] * 4
    assert sorted(found["second"]) == numbered("new", count=40), "goes on from what was committed"
    last_old = {f"old {number}" for number in range(36, 40)}
    assert set(found["sought"]) >= {*numbered("new", count=40), *last_old}
    assert len(found["sought"]) < 80, "the client read on from where it sought"


def test_pop(answers: Answers) -> None:
    found = happened(answers, "pop")
    messages = [*found["first"], *found["second"]]
    assert {message["body"] for message in messages} == set(numbered("popped", count=40))
    assert all("POP_CK" in message["properties"] for message in messages), "popped, not pulled"
    again = [message for message in messages if message["times"] > 0]
    assert {message["body"] for message in again} == {"popped 7"}
    times: dict[str, int] = defaultdict(int)
    for message in messages:
        times[message["body"]] += 1
    assert {body for body, count in times.items() if count > 1} == {"popped 7"}


def test_a_trace_is_kept(answers: Answers) -> None:
    found = happened(answers, "trace")
    assert found["msgId"] in found["trace"]
    assert found["trace"].startswith("Pub\x01")


def test_questions_about_a_queue(answers: Answers) -> None:
    found = happened(answers, "offsets")
    assert found == {
        "min": 0,
        "max": 10,
        "by key": "body 4",
        "by shared key": 10,
        "at its time": 4,
        "after its time": 5,
        "before all": 0,
        "after all": 10,
        "by offset id": "body 0",
        "by unique id": "body 5",
        "earliest": True,
        "pulled": ["body 3", "body 4", "body 5", "body 6"],
        "next": 7,
        "status": "FOUND",
        "too far": "OFFSET_ILLEGAL",
        "at the end": "NO_NEW_MSG",
        "committed": 7,
        "no such queue": INVALID_PARAMETER,
    }


def test_the_shipped_examples_run_as_they_are(answers: Answers) -> None:
    found = happened(answers, "examples")
    for stage in EXAMPLES:
        for name, text, times, *_ in stage:
            printed = found[str(name)]
            assert printed.count(str(text)) >= int(str(times)), printed[-2000:]
