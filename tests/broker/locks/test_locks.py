"""Queues for one consumer alone."""

from __future__ import annotations

import json
from pathlib import Path

from mqlake.broker.state.queue_locks import LIFETIME, QueueLocks
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.remoting.shares import Shares
from tests import simulated
from tests.broker.running import Running, running

A, B, C = (MessageQueue("Orders", "broker-a", queue_id) for queue_id in range(3))


class Time:
    now = 1000

    def __call__(self) -> int:
        return self.now


def locked(
    locks: QueueLocks, group: str, client_id: str, *queues: MessageQueue
) -> list[MessageQueue]:
    """Return the queues that a client has once it has asked for some."""
    return [queue for queue in queues if locks.lock(group, client_id, queue)]


def test_locks() -> None:
    time = Time()
    locks = QueueLocks(time, Shares(lambda: 100))
    assert locked(locks, "g", "one", A, B, A) == [A, B, A]
    assert locked(locks, "g", "two", B, C) == [C]
    assert locked(locks, "other", "two", A) == [A], "each group has its own"
    assert locked(locks, "g", "one", A, B) == [A, B], "and once more"
    assert len(locks) == 4
    for queue in (A, C):
        locks.unlock("g", "two", queue)
    assert (locks.owner("g", A), locks.owner("g", C)) == ("one", None), "only one's own"
    assert locked(locks, "g", "one", C) == [C]


def test_locks_end_when_they_are_not_renewed() -> None:
    time = Time()
    locks = QueueLocks(time, Shares(lambda: 100))
    locked(locks, "g", "one", A, B)
    time.now += LIFETIME // 2
    locked(locks, "g", "one", A)
    time.now += LIFETIME // 2 + 1
    assert (locks.owner("g", A), locks.owner("g", B)) == ("one", None)
    list(locks.expire())
    assert locked(locks, "g", "two", A, B) == [B]
    time.now += 2 * LIFETIME
    list(locks.expire())
    assert not len(locks)
    assert not locks._groups  # pyright: ignore[reportPrivateUsage]


def body(client_id: str, *queues: int) -> bytes:
    chosen = [{"topic": "Orders", "brokerName": "broker-a", "queueId": one} for one in queues]
    return json.dumps({"consumerGroup": "g", "clientId": client_id, "mqSet": chosen}).encode()


async def lock(broker: Running, client_id: str, *queues: int) -> list[int]:
    answer = await broker.ask(RequestCode.LOCK_BATCH_MQ, None, body(client_id, *queues))
    found = json.loads(bytes(answer.body))["lockOKMQSet"]
    assert all((one["topic"], one["brokerName"]) == ("Orders", "broker-a") for one in found)
    return [one["queueId"] for one in found]


def test_requests(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as broker:
            assert await lock(broker, "one", 0, 1) == [0, 1]
            assert await lock(broker, "two", 0, 2) == [2]
            answer = await broker.ask(RequestCode.UNLOCK_BATCH_MQ, None, body("one", 0))
            assert answer.code == ResponseCode.SUCCESS
            assert await lock(broker, "two", 0, 1, 2) == [0, 2]
            answer = await broker.ask(RequestCode.LOCK_BATCH_MQ, None, b"{]")
            assert answer.code == ResponseCode.SYSTEM_ERROR

    simulated.run(main())
