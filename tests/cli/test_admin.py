"""`mqlake admin` against a broker of this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from mqlake.broker.broker import Broker
from mqlake.cli.commands.admin.arguments import milliseconds
from mqlake.cli.commands.admin.commands import COMMANDS
from mqlake.cli.options import UsageError
from mqlake.client.message import Message
from mqlake.storage.clock import SystemClock
from mqlake.testing import RunningBroker, broker
from tests.broker.running import PATIENCE
from tests.cli.conftest import Mqlake

GROUP = "g"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker with a topic of two queues, three messages, and a group that has read one."""
    with broker(brokerName="broker-a") as found:
        yield found


class Admin:
    """Runs `mqlake admin` on the broker; each test has a topic of its own."""

    def __init__(self, mqlake: Mqlake, running: RunningBroker, topic: str) -> None:
        self._mqlake, self.running, self.topic = mqlake, running, topic

    def text(self, *words: object) -> str:
        """Return what a command that succeeds prints."""
        ran = self._mqlake("admin", *words, "-n", self.running.name_server)
        assert ran.code == 0, ran.err
        return ran.out

    def json(self, *words: object) -> Any:
        """Return the JSON object of a command that succeeds."""
        ran = self._mqlake("admin", *words, "-n", self.running.name_server, "--json")
        assert ran.code == 0, ran.err
        return ran.json

    def fails(self, *words: object) -> tuple[int, str]:
        """Return exit code and stderr."""
        ran = self._mqlake("admin", *words, "-n", self.running.name_server)
        assert ran.code, ran.out
        return ran.code, ran.err

    def commit(self, queue_id: int, offset: int) -> None:
        """Let the group stand somewhere."""

        async def do(found: Broker) -> None:
            found.state.groups.get_or_make(GROUP)
            found.state.topics.make(f"%RETRY%{GROUP}", 1)
            offsets = found.state.store.core.config.consumer_offsets
            offsets.commit(GROUP, self.topic, queue_id, offset)
            await found.state.names.told()

        self.running.call(do)


@pytest.fixture
def admin(mqlake: Mqlake, running: RunningBroker, request: pytest.FixtureRequest) -> Admin:
    return Admin(mqlake, running, request.function.__name__)


@pytest.fixture
def orders(admin: Admin) -> Iterator[list[dict[str, Any]]]:
    """The topic, new, with three messages in queue 1; what the sends answered."""
    admin.json("updateTopic", "-c", "DefaultCluster", "-t", admin.topic, "-r", 2, "-w", 2)
    sends = [
        ("-p", f"hello {number}", "-k", f"key{number}", "-c", f"Tag{number % 2}")
        for number in range(3)
    ]
    yield [admin.json("sendMessage", "-t", admin.topic, "-i", 1, *words) for words in sends]
    admin.json("deleteTopic", "-c", "DefaultCluster", "-t", admin.topic)


def bodies(found: Any) -> list[str]:
    return [message["properties"]["KEYS"] for message in found["messages"]]


def test_slaves_are_shown_with_their_masters(mqlake: Mqlake, running: RunningBroker) -> None:
    names = running.name_server
    slave = {"brokerName": "broker-a", "brokerRole": "SLAVE", "brokerId": 1}
    with broker(namesrvAddr=names, **slave) as follower:
        rows = brokers_once_there_are(2, mqlake, names)
        found = [(row["brokerId"], row["address"], row["activated"]) for row in rows]
        assert found == [(0, running.address, True), (1, follower.address, True)]
        deadline = monotonic() + PATIENCE
        while not re.search(
            r"slaveNum\W+1", mqlake("admin", "haStatus", "-b", running.address, "-n", names).out
        ):
            assert monotonic() < deadline, "the slave does not follow the log"
        text = mqlake("admin", "haStatus", "-b", follower.address, "-n", names).out
        assert "masterAddr" in text
        assert "slaveNum" not in text
    brokers_once_there_are(1, mqlake, names)  # as the other tests expect it


def brokers_once_there_are(count: int, mqlake: Mqlake, names: str) -> list[dict[str, Any]]:
    """Return the brokers of a cluster: a name server hears of them a little later."""
    deadline = monotonic() + PATIENCE
    while True:
        rows: list[dict[str, Any]] = mqlake("admin", "clusterList", "-n", names, "--json").json[
            "brokers"
        ]
        if len(rows) == count:
            return rows
        assert monotonic() < deadline, rows


def test_topics(admin: Admin, orders: list[dict[str, Any]]) -> None:
    assert admin.topic in admin.json("topicList")["topics"]
    assert f"\n{admin.topic}\n" in admin.text("topicList")
    rows = admin.json("topicList", "-c")["topics"]
    assert {"cluster": "DefaultCluster", "topic": admin.topic, "group": ""} in rows
    queues = admin.json("topicStatus", "-t", admin.topic)["queues"]
    assert [(q["queueId"], q["minOffset"], q["maxOffset"]) for q in queues] == [
        (0, 0, 0),
        (1, 0, 3),
    ]
    assert admin.json("topicClusterList", "-t", admin.topic) == {"clusters": ["DefaultCluster"]}
    route = admin.json("topicRoute", "-t", admin.topic)
    assert route["brokerDatas"][0]["brokerAddrs"] == {"0": admin.running.address}
    assert admin.running.address in admin.text("topicRoute", "-t", admin.topic)
    (rates,) = admin.json("statsAll", "-t", admin.topic)["topics"]
    assert rates["inMessages"] >= 3
    assert "broker-a" in admin.text("updateTopicPerm", "-b", "broker-a", "-t", admin.topic, "-p", 4)
    route = admin.json("topicRoute", "-t", admin.topic)
    assert route["queueDatas"][0]["perm"] == 4
    assert route["queueDatas"][0]["readQueueNums"] == 2, "nothing else has changed"


def test_static_topics(admin: Admin) -> None:
    queues = admin.json("updateStaticTopic", "-t", admin.topic, "-qn", 3, "-b", "broker-a")
    assert [row["queueId"] for row in queues["queues"]] == [0, 1, 2]
    assert {row["brokerName"] for row in queues["queues"]} == {"broker-a"}
    route = admin.json("topicRoute", "-t", admin.topic)
    assert route["topicQueueMappingByBroker"]["broker-a"]["totalQueues"] == 3
    same = admin.json("remappingStaticTopic", "-t", admin.topic, "-c", "DefaultCluster")
    assert [row["stretches"] for row in same["queues"]] == [1, 1, 1], "nothing has to move"
    code, error = admin.fails("updateStaticTopic", "-t", admin.topic, "-qn", 2, "-b", "broker-a")
    assert (code, "new number must be larger" in error) == (2, True)
    code, error = admin.fails("remappingStaticTopic", "-t", admin.topic, "-b", "broker-z")
    assert (code, "broker-z is registered" in error) == (2, True)
    admin.json("deleteTopic", "-c", "DefaultCluster", "-t", admin.topic)


def test_messages(admin: Admin, orders: list[dict[str, Any]]) -> None:
    ids = [put["msgId"] for put in orders]
    unique = [put["transactionId"] for put in orders]
    assert bodies(admin.json("queryMsgById", "-i", ids[1])) == ["key1"]
    assert bodies(admin.json("queryMsgById", "-i", unique[2], "-t", admin.topic)) == ["key2"]
    assert bodies(admin.json("queryMsgByUniqueKey", "-i", unique[0], "-t", admin.topic)) == ["key0"]
    assert bodies(admin.json("queryMsgByKey", "-t", admin.topic, "-k", "key1")) == ["key1"]
    found = admin.json("queryMsgByKey", "-t", admin.topic, "-k", "Tag0", "-p", "T")
    assert bodies(found) == ["key0", "key2"]
    place = ("-t", admin.topic, "-b", "broker-a", "-i", 1)
    assert bodies(admin.json("queryMsgByOffset", *place, "-o", 1)) == ["key1"]
    assert bodies(admin.json("consumeMessage", "-t", admin.topic, "-c", 2)) == ["key0", "key1"]
    assert bodies(admin.json("consumeMessage", *place, "-o", 2)) == ["key2"]
    assert bodies(admin.json("printMsg", "-t", admin.topic)) == ["key0", "key1", "key2"]
    assert bodies(admin.json("printMsg", "-t", admin.topic, "-s", "Tag1")) == ["key1"]
    last = admin.json("queryMsgById", "-i", ids[2])["messages"][0]["storeTimestamp"]
    assert "key2" in bodies(admin.json("printMsg", "-t", admin.topic, "-b", last))
    assert "hello 1" in admin.text("queryMsgById", "-i", ids[1])

    code, error = admin.fails("queryMsgById", "-i", ids[1], "-g", "nobody")
    assert (code, "not online" in error or "nobody" in error) == (2, True)
    code, error = admin.fails("resendDeadLetter", "-i", ids[1])
    assert (code, f"message {ids[1]} of topic {admin.topic} is no dead letter" in error) == (
        2,
        True,
    )

    assert admin.fails("queryMsgByKey", "-t", admin.topic, "-k", "nothing") == (1, "")
    assert admin.fails("printMsg", "-t", admin.topic, "-b", "now") == (1, "")
    code, error = admin.fails("queryMsgByOffset", *place, "-o", 9)
    assert (code, error) == (2, f"mqlake: topic {admin.topic}, queue 1: no message at offset 9\n")
    code, error = admin.fails("sendMessage", "-t", "../../x", "-p", "a", "-b", "broker-a")
    assert code == 2
    assert "illegal characters" in error


@pytest.mark.parametrize("command", ["consumerProgress", "consumerConnection"])
def test_a_group_that_does_not_exist_is_one_line(admin: Admin, command: str) -> None:
    why = "group nobody does not exist: no broker has its retry topic, %RETRY%nobody"
    assert admin.fails(command, "-g", "nobody") == (2, f"mqlake: {why}\n")


def test_groups(admin: Admin, orders: list[dict[str, Any]]) -> None:
    admin.commit(1, 1)
    (queue,) = (
        row for row in admin.json("consumerProgress", "-g", GROUP)["queues"] if row["queueId"] == 1
    )
    assert (queue["topic"], queue["brokerOffset"], queue["consumerOffset"]) == (admin.topic, 3, 1)
    assert queue["lag"] == 2
    (whole,) = admin.json("consumerProgress")["groups"]
    assert (whole["group"], whole["consumers"], whole["lag"]) == (GROUP, 0, 2)
    rows = admin.json("brokerConsumeStats", "-b", "broker-a")["queues"]
    assert [row["lag"] for row in rows if row["group"] == GROUP] == [0, 2]

    skipped = admin.json("skipAccumulatedMessage", "-g", GROUP, "-t", admin.topic)["queues"]
    assert [row["offset"] for row in skipped] == [0, 3]
    back = admin.json("resetOffsetByTime", "-g", GROUP, "-t", admin.topic, "-s", 1000)["queues"]
    assert [row["offset"] for row in back] == [0, 0]
    admin.json("updateSubGroup", "-b", "broker-a", "-g", "h", "-r", 5)
    assert admin.json("getConsumerConfig", "-g", "h")["broker-a"]["retryMaxTimes"] == 5
    factor = "priority.factor"
    words = ("updateSubGroup", "-b", "broker-a", "-g", "h")
    admin.json(*words, "--attributes", f"+{factor}=80")
    assert admin.json("getConsumerConfig", "-g", "h")["broker-a"]["attributes"] == {factor: "80"}
    assert "write +name=value or -name" in admin.fails(*words, "--attributes", factor)[1]
    admin.commit(1, 2)
    (cloned,) = (
        row
        for row in admin.json("cloneGroupOffset", "-s", GROUP, "-d", "h", "-t", admin.topic)[
            "queues"
        ]
        if row["queueId"] == 1
    )
    assert cloned["consumerOffset"] in (0, 2)
    admin.json("deleteSubGroup", "-b", "broker-a", "-g", "h", "-r")
    # As with mqadmin, a broker that creates groups by itself creates the one that is asked for.
    assert admin.json("getConsumerConfig", "-g", "h")["broker-a"]["retryMaxTimes"] == 16
    code, error = admin.fails("consumerConnection", "-g", GROUP)
    assert (code, error) == (2, f"mqlake: the consumer group[{GROUP}] not online\n")
    code, error = admin.fails("producerConnection", "-g", "p", "-t", admin.topic)
    assert (code, error) == (2, "mqlake: the producer group[p] not exist\n")
    assert admin.json("producer", "-b", "broker-a") == {"producers": []}


def test_a_group_is_deleted_with_its_retry_and_dead_letter_topics(admin: Admin) -> None:
    async def topics(broker: Broker) -> set[str]:
        return {name for name in ("%RETRY%old", "%DLQ%old") if name in broker.state.topics}

    async def make(broker: Broker) -> None:
        for name in ("%RETRY%old", "%DLQ%old"):
            broker.state.topics.make(name, 1)

    admin.running.call(make)
    admin.json("deleteSubGroup", "-b", "broker-a", "-g", "old")
    assert len(admin.running.call(topics)) == 2
    admin.json("deleteSubGroup", "-c", "DefaultCluster", "-g", "old")
    assert not admin.running.call(topics)


def test_brokers_and_name_servers(admin: Admin) -> None:
    (row,) = admin.json("clusterList")["brokers"]
    assert (row["brokerName"], row["address"]) == ("broker-a", admin.running.address)
    assert "broker-a" in admin.text("clusterList")
    assert admin.json("brokerStatus", "-b", "broker-a")["brokerVersionDesc"] == row["version"]
    assert admin.json("haStatus", "-b", admin.running.address)["inSyncSlaveNums"] == 0
    change = ("-k", "fileReservedTime", "-v", 11)
    admin.json("updateBrokerConfig", "-c", "DefaultCluster", *change)
    assert admin.json("getBrokerConfig", "-b", "broker-a")["fileReservedTime"] == "11"
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        (changed,) = admin.json(command)["changed"]
        assert changed["brokerName"] == "broker-a"
    assert "orderMessageEnable" in admin.json("getNamesrvConfig")[admin.running.name_server]
    order = ("updateOrderConf", "-t", "Ordered", "-m")
    admin.json(*order, "put", "-v", "broker-a:4")
    assert admin.json(*order, "get") == {"topic": "Ordered", "orderConf": "broker-a:4"}
    admin.json(*order, "delete")
    assert admin.fails(*order, "get")[0] == 2
    admin.json("updateKvConfig", "-s", "NS", "-k", "k", "-v", "v")
    admin.json("deleteKvConfig", "-s", "NS", "-k", "k")
    wiped = admin.json("wipeWritePerm", "-b", "broker-a")[admin.running.name_server]
    assert wiped > 0
    assert admin.json("addWritePerm", "-b", "broker-a")[admin.running.name_server] == wiped


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("topicStatus", "-t", "Nothing"), "topic: Nothing"),
        (("brokerStatus", "-b", "nobody"), "no broker nobody is registered"),
        (("deleteTopic", "-t", "T", "-c", "nowhere"), "no cluster nowhere is registered"),
        (("updateTopic", "-t", "T"), "name the target: -c CLUSTER or -b BROKER"),
        (("deleteTopic", "-t", "T"), "name the cluster: -c CLUSTER"),
        (("updateOrderConf", "-t", "T", "-m", "put"), "-m put needs the queues: -v"),
        (("queryMsgById", "-i", "xyz"), "xyz"),
        (("queryMsgById", "-i", "xyz", "-d", "client"), "name the group with -g"),
        (("resendDeadLetter", "-i", "xyz"), "xyz"),
        (("brokerStatus", "-b", "127.0.0.1:1"), "127.0.0.1:1"),
    ],
)
def test_one_line_says_what_is_wrong(admin: Admin, words: tuple[str, ...], error: str) -> None:
    code, err = admin.fails(*words)
    assert code == 2
    assert err.startswith("mqlake: ")
    assert err.count("\n") == 1
    assert error in err


def test_no_name_server(mqlake: Mqlake) -> None:
    ran = mqlake("admin", "topicList", "-n", "127.0.0.1:1")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "127.0.0.1:1" in ran.err
    assert (
        mqlake("admin", "topicList", "-n", ";").err
        == 'mqlake: no name server is given: pass "host:port"\n'
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help(mqlake: Mqlake, name: str) -> None:
    ran = mqlake("admin", name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: mqlake admin {name} ")


def test_the_help_that_an_error_names(mqlake: Mqlake) -> None:
    ran = mqlake("admin", "topicStatus")
    assert "(see mqlake admin topicStatus --help)" in ran.err
    assert "(see mqlake admin --help)" in mqlake("admin", "topicStatu").err


def test_times() -> None:
    assert milliseconds("1795132800000") == 1_795_132_800_000
    assert milliseconds("-1") == -1
    assert milliseconds("2026-11-20#00:00:00:500") % 1000 == 500
    assert milliseconds("now") > 1_700_000_000_000
    with pytest.raises(UsageError, match="not a time: soon"):
        milliseconds("soon")


def test_all_commands_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "admin.md").read_text()
    assert [name for name in COMMANDS if f"`{name}`" not in page] == []


def test_recalls_a_message(mqlake: Mqlake) -> None:
    with broker(recallMessageEnable=True, brokerName="broker-a") as running:
        with running.producer() as producer:
            due = int(SystemClock().milliseconds()) + 3_600_000
            sent = producer.send(Message(topic="T", body=b"x", deliver_at=due))
        place = ("-t", "T", "-b", "broker-a", "-n", running.name_server)
        handle = sent.recall_handle
        assert handle is not None
        ran = mqlake("admin", "recallMessage", *place, "--recallHandle", handle, "--json")
        assert ran.code == 0, ran.err
        assert ran.json == {"recalled": [handle]}
        ran = mqlake("admin", "recallMessage", *place, "--recallHandle", "x")
        assert ran.code == 2
