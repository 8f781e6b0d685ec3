"""What a name server knows after brokers came, changed, fell silent and went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.formats.config.topics import Topic
from mqlake.namesrv.broker_table import HEARTBEAT_TIMEOUT, BrokerKey, Place
from mqlake.namesrv.routes import Master, RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.bodies.route import QueueData, TopicQueueMappingInfo
from mqlake.remoting.slices import run_at_once
from tests.namesrv.registrations import OTHERS, place, registration

SETTINGS = NamesrvSettings()
ACTING = NamesrvSettings(support_acting_master=True)


def register(
    routes: RouteTable, *topics: str | Topic, now: int = 0, **more: object
) -> Master | None:
    return run_at_once(routes.register(registration(*topics, **more), SETTINGS, now))  # type: ignore[arg-type]


def queues(routes: RouteTable, topic: str) -> dict[str, tuple[int, int]]:
    route = routes.find(topic, SETTINGS)
    return {d.broker_name: (d.read_queue_nums, d.perm) for d in route.queue_datas} if route else {}


def test_a_topic_is_where_brokers_have_it() -> None:
    routes = RouteTable()
    register(routes, "T", "U")
    register(routes, Topic("T", 8, 8, 4), at=place("h:2", "b"))
    assert queues(routes, "T") == {"a": (4, 6), "b": (8, 4)}
    assert queues(routes, "U") == {"a": (4, 6)}
    assert routes.find("V", SETTINGS) is None
    route = routes.find("T", SETTINGS)
    assert route is not None
    assert [data.broker_addrs for data in route.broker_datas] == [{0: "h:1"}, {0: "h:2"}]


def test_a_broker_may_change_its_topics_and_only_a_new_version_counts() -> None:
    routes = RouteTable()
    register(routes, "T")
    register(routes, Topic("T", 9, 9))
    assert queues(routes, "T") == {"a": (4, 6)}
    register(routes, Topic("T", 9, 9), "U", version=2)
    assert queues(routes, "T") == {"a": (9, 6)}
    register(routes, "V", version=2)  # new to the name server, whatever the version
    assert queues(routes, "V") == {"a": (4, 6)}


def test_a_topic_that_is_no_longer_registered_stays_unless_it_is_to_go() -> None:
    routes = RouteTable()
    register(routes, "T", "U")
    register(routes, "U", version=2)
    assert queues(routes, "T")
    strict = NamesrvSettings(delete_topic_with_broker_registration=True)
    run_at_once(routes.register(registration("U", version=3), strict, 0))
    assert not queues(routes, "T")
    assert queues(routes, "U")


def test_one_topic_of_an_unknown_broker_is_refused() -> None:
    routes = RouteTable()
    alone = TopicConfigs({"T": Topic("T")})
    new = registration()._replace(body=RegisterBody(alone))
    assert run_at_once(routes.register(new, SETTINGS, 0)) is None
    assert not routes.brokers.by_name
    assert not routes.brokers.clusters
    register(routes, "U")
    assert run_at_once(routes.register(new, SETTINGS, 0)) == Master()
    assert queues(routes, "T")


def test_slaves_learn_their_master_and_add_no_topics() -> None:
    routes = RouteTable()
    slave = place("h:2", "a", 1)
    assert register(routes, "T", at=slave, acting=None) == Master()
    assert routes.find("T", SETTINGS) is None
    register(routes, "T")
    assert register(routes, "S", at=slave, acting=None) == Master("h:1", "ha-h:1")
    route = routes.find("T", SETTINGS)
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {0: "h:1", 1: "h:2"}


def test_a_slave_that_becomes_the_master_has_one_id() -> None:
    routes = RouteTable()
    register(routes, "T")
    register(routes, "T", at=place("h:2", "a", 1))
    register(routes, "T", at=place("h:2", "a", 0), version=2)
    assert routes.brokers.by_name["a"].broker_addrs == {0: "h:2"}


def test_a_broker_of_an_older_state_cannot_take_a_living_ones_place() -> None:
    routes = RouteTable()
    register(routes, "T", state=5)
    assert register(routes, "U", at=place("h:2"), state=4) == Master()
    assert routes.brokers.by_name["a"].broker_addrs == {0: "h:1"}
    register(routes, "U", at=place("h:2"), state=5)
    assert routes.brokers.by_name["a"].broker_addrs == {0: "h:2"}


def test_the_last_broker_of_a_name_takes_its_topics_along() -> None:
    routes = RouteTable()
    mapping = {"T": TopicQueueMappingInfo("T", bname="a")}
    register(routes, "T", mappings=mapping)
    register(routes, "T", at=place("h:2", "a", 1))
    run_at_once(routes.unregister(place()))
    assert queues(routes, "T") == {"a": (4, 6)}
    run_at_once(routes.unregister(place("h:2", "a", 1)))
    assert not routes.topics.queues
    assert not routes.topics.mappings
    assert not routes.brokers.by_name
    assert not routes.brokers.clusters
    assert not routes.brokers.live
    run_at_once(routes.unregister(place()))  # once more changes nothing


def test_a_broker_goes_with_the_connection_that_it_registered_over_last() -> None:
    routes = RouteTable()
    first, second = object(), object()
    register(routes, "T", connection=first)
    register(routes, "T", connection=second)
    run_at_once(routes.lose(first))
    assert queues(routes, "T")
    run_at_once(routes.lose(second))
    assert not queues(routes, "T")


def test_a_silent_broker_expires() -> None:
    routes = RouteTable()
    register(routes, "T", now=1000)
    register(routes, "U", at=place("h:2", "b"), now=1000, timeout=10)
    assert run_at_once(routes.expire(1010)) == []
    (expired,) = run_at_once(routes.expire(1011))
    assert expired.timeout == 10
    assert not queues(routes, "U")
    routes.brokers.heard(BrokerKey("c", "h:1"), 2000)
    assert run_at_once(routes.expire(2000 + HEARTBEAT_TIMEOUT)) == []
    assert len(run_at_once(routes.expire(2001 + HEARTBEAT_TIMEOUT))) == 1
    assert not routes.topics.queues


def test_write_permission_is_wiped_and_given_back() -> None:
    routes = RouteTable()
    register(routes, "T", Topic("U", 4, 4, 2))
    register(routes, "T", at=place("h:2", "b"))
    count = 2 + len(OTHERS)
    assert run_at_once(routes.topics.wipe_write("a")) == count
    assert queues(routes, "T") == {"a": (4, 4), "b": (4, 6)}
    register(routes, "T")  # as it was: the same version does not give it back
    assert queues(routes, "T")["a"] == (4, 4)
    assert run_at_once(routes.topics.add_write("a")) == count
    assert queues(routes, "U") == {"a": (4, 6)}
    assert run_at_once(routes.topics.wipe_write("x")) == 0


def test_a_topic_alone_is_taken_only_for_known_brokers() -> None:
    routes = RouteTable()
    register(routes)
    data = QueueData("a", 4, 4, 6)
    routes.register_topic("T", [data, QueueData("x", 4, 4, 6)])
    assert not queues(routes, "T")
    routes.register_topic("T", [data])
    assert queues(routes, "T") == {"a": (4, 6)}


def test_flags_of_units() -> None:
    routes = RouteTable()
    made = [Topic(name, 4, 4, 6, topic_sys_flag=flag) for flag, name in enumerate("NUSB")]
    register(routes, *made)
    assert run_at_once(routes.topics.flagged(1)) == ["U", "B"]
    assert run_at_once(routes.topics.flagged(2)) == ["S", "B"]
    assert run_at_once(routes.topics.flagged(2, 1)) == ["S"]


def test_static_topics_tell_their_mappings() -> None:
    routes = RouteTable()
    register(routes, "T", mappings={"T": TopicQueueMappingInfo("T", bname="a", curr_id_map={0: 1})})
    route = routes.find("T", SETTINGS)
    assert route is not None
    assert route.topic_queue_mapping_by_broker
    assert route.topic_queue_mapping_by_broker["a"].curr_id_map == {0: 1}


@pytest.mark.parametrize("topic", ["T", "rmq_sys_SYNC_BROKER_MEMBER_a"])
def test_a_slave_acts_for_a_master_that_is_gone(topic: str) -> None:
    routes = RouteTable()
    for at in (place(), place("h:2", "a", 1), place("h:3", "a", 2)):
        run_at_once(routes.register(registration(topic, at=at, acting=True), ACTING, 0))
    run_at_once(routes.unregister(place()))
    route = routes.find(topic, ACTING)
    assert route is not None
    assert route.queue_datas[0].perm == 4  # nothing is written without a master
    acts = topic == "T"
    expected = {0: "h:2", 2: "h:3"} if acts else {1: "h:2", 2: "h:3"}
    assert route.broker_datas[0].broker_addrs == expected
    plain = routes.find(topic, SETTINGS)
    assert plain is not None
    assert plain.broker_datas[0].broker_addrs == {1: "h:2", 2: "h:3"}


PLACES = st.builds(
    place,
    st.sampled_from(["h:1", "h:2", "h:3"]),
    st.sampled_from("ab"),
    st.integers(0, 2),
    st.sampled_from("cd"),
)
STEPS = st.one_of(
    st.tuples(st.just("register"), PLACES, st.integers(0, 3)),
    st.tuples(st.just("unregister"), PLACES, st.none()),
    st.tuples(st.just("expire"), st.none(), st.none()),
    st.tuples(st.just("lose"), st.none(), st.integers(0, 2)),
)


@given(st.lists(STEPS, max_size=30))
def test_the_tables_agree_whatever_happens(steps: list[tuple[str, Place, int]]) -> None:
    routes, connections, now = RouteTable(), [object() for _ in range(4)], 0
    for what, where, number in steps:
        now += HEARTBEAT_TIMEOUT // 3
        if what == "register":
            new = registration("T", at=where, version=now, connection=connections[number])
            routes.register(new, SETTINGS, now)
        elif what == "unregister":
            run_at_once(routes.unregister(where))
        elif what == "expire":
            run_at_once(routes.expire(now))
        else:
            run_at_once(routes.lose(connections[number]))
        brokers = routes.brokers
        assert all(data.broker_addrs for data in brokers.by_name.values())
        names = {name for on in brokers.clusters.values() for name in on}
        assert names == brokers.by_name.keys()
        on_topics = {name for found in routes.topics.queues.values() for name in found}
        assert on_topics <= brokers.by_name.keys()
        addresses = {a for data in brokers.by_name.values() for a in data.broker_addrs.values()}
        assert addresses <= {key.address for key in brokers.live}


@pytest.mark.parametrize("steps", range(9))
@pytest.mark.parametrize("is_lost_first", [True, False])
def test_a_broker_that_registers_again_is_not_forgotten_with_its_last_connection(
    steps: int, *, is_lost_first: bool
) -> None:
    """Both are done a slice at a time, and begin in either order."""
    routes, names = RouteTable(), ("T", "U", "V", "W")
    register(routes, *names, connection="old")
    losing = routes.lose("old")
    again = routes.register(registration(*names, version=2, connection="new"), SETTINGS, 1)
    jobs = [losing, again] if is_lost_first else [again, losing]
    for _ in range(steps):
        next(jobs[0], None)
    while jobs:
        jobs = [job for job in reversed(jobs) if next(job, "ended") != "ended"]

    assert queues(routes, "T") == queues(routes, "W") == {"a": (4, 6)}
    assert [live.connection for live in routes.brokers.live.values()] == ["new"]
