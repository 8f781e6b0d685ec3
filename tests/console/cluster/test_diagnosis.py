"""Why a group lags: each reason is found, and named only if it applies."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.admin.groups import QueueProgress
from mqlake.console.cluster.diagnosis import GroupState, diagnosis
from mqlake.console.cluster.members import ConnectedMembers, ReportedMember
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.running_info import ProcessQueueInfo

NOW = 1_000_000_000


def row(queue: int, lag: int, topic: str = "T") -> QueueProgress:
    return QueueProgress(topic, "b", queue, 100 + lag, 100, lag, 0, 0)


def member(
    name: str, queues: Mapping[int, ProcessQueueInfo] | None = None, text: str = "*"
) -> ReportedMember:
    return ReportedMember(name, "1.2.3.4:5", "JAVA", 1, "b:1", {"T": text})._replace(
        queues={MessageQueue("T", "b", at): info for at, info in (queues or {}).items()}
    )


def texts(
    rows: list[QueueProgress],
    members: list[ReportedMember],
    *,
    rates: tuple[float, float] = (0.0, 0.0),
    may: bool = True,
    model: str = "CLUSTERING",
) -> str:
    membership = ConnectedMembers(members, {"T": "*"}, model, "CONSUME_PASSIVELY", all_asked=True)
    found = diagnosis(GroupState(rows, membership, {"b": may}, *rates, NOW))
    return "\n".join(each.text for each in found)


def busy(**facts: int) -> ProcessQueueInfo:
    return ProcessQueueInfo(0, **facts)


def test_nothing_is_wrong_without_a_lag() -> None:
    assert texts([row(0, 0)], []) == ""


def test_nobody_is_connected() -> None:
    assert texts([row(0, 5)], []).startswith("No consumer is connected")


def test_a_broker_forbids_it() -> None:
    assert "consumeEnable is off" in texts([row(0, 0)], [], may=False)


def test_members_differ() -> None:
    found = texts([row(0, 0)], [member("a"), member("b", text="x")])
    assert found.startswith("Members differ about topic T: ")
    assert "1 subscribe to 'x'" in found
    assert "Members differ" not in texts([row(0, 0)], [member("a"), member("b")])


def test_a_member_that_reports_nothing_does_not_differ() -> None:
    silent = member("b")._replace(subscriptions=None, problem="it is old")
    assert texts([row(0, 0)], [member("a"), silent]) == ""


def test_queues_without_a_member() -> None:
    found = texts([row(0, 5), row(1, 5)], [member("a", {0: busy()})])
    assert "No member consumes 1 queue of T with waiting messages." in found
    found = texts([row(0, 5), row(1, 5)], [member("a")])
    assert "No member consumes 2 queues of T with waiting messages." in found


def test_faster_members_are_not_advised_if_the_lag_is_where_no_member_is() -> None:
    found = texts([row(0, 1), row(1, 99)], [member("a", {0: busy()})], rates=(10.0, 4.0))
    assert "No member consumes 1 queue" in found
    assert "this member is slow" not in found
    assert "the lag grows" not in found


def test_broadcasting_members_own_no_queues() -> None:
    assert "No member consumes" not in texts([row(0, 5)], [member("a")], model="BROADCASTING")


def test_a_handler_hangs() -> None:
    hanging = busy(cached_msg_count=7, last_consume_timestamp=NOW - 120_000)
    found = texts([row(0, 9)], [member("a", {0: hanging})])
    assert "a holds 7 messages and has finished none for 120 s" in found
    working = busy(cached_msg_count=7, last_consume_timestamp=NOW - 100)
    assert "holds" not in texts([row(0, 9)], [member("a", {0: working})])


def test_handlers_fail() -> None:
    failing = member("a", {0: busy()})._replace(failing=2.5)
    assert "Handlers fail 2.50 messages a second" in texts([row(0, 9)], [failing])


def test_one_queue_has_most_of_the_lag() -> None:
    owner = member("a", {0: busy(), 1: busy()})
    found = texts([row(0, 1), row(1, 99)], [owner])
    assert "99% of the lag is in queue 1 of T on b, which a consumes." in found
    assert "of the lag is in" not in texts([row(0, 50), row(1, 50)], [owner])


def test_producers_are_faster() -> None:
    owner = member("a", {0: busy()})
    assert "the lag grows" in texts([row(0, 99)], [owner], rates=(10.0, 4.0))
    filtering = member("a", {0: busy()}, text="red")
    assert "the lag grows" not in texts([row(0, 99)], [filtering], rates=(10.0, 4.0))
    assert "about 2 min" in texts([row(0, 120)], [owner], rates=(3.0, 4.0))
