"""Groups of Java and Python members for some minutes: messages are sent, members come and go."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from mqlake.client import Message, MessageQueue, Producer, PullConsumer
from mqlake.errors import MqlakeError
from tests.client.ledger import Delivery, read_all
from tests.peer.mixed_groups.members import Change, Jvm, Members
from tests.peer.rocketmq_client import Clients

MODES = ("concurrent", "ordered", "broadcasting", "pop")
QUEUES = 8
MOST = 3
"""Members of each kind in a group."""
PATIENCE = 120.0
"""Seconds until everything must be consumed after the last send."""
LEAST_SENT = 150
"""Messages to a group, however long a slow machine takes for them."""
_PAUSE = 0.02
"""Seconds between two sends to a topic."""
_CHANGES = (3.0, 9.0)
"""Seconds between two changes of a group."""
_NEAR = 6.0
"""Seconds from a change of the group to a delivery that it may have repeated: offsets are committed
every five seconds."""


class Outcome(NamedTuple):
    """What came of one group.

    Attributes:
        repeated: deliveries that repeat another one, by their cause.
        overlap: the most seconds in which two members handled messages of one queue.
        drained: seconds from the last send until everything was consumed.
    """

    mode: str
    sent: int
    deliveries: Counter[str]
    changes: Counter[str]
    repeated: Counter[str]
    observations: int
    overlap: float
    drained: float
    violations: Sequence[str]


def run(
    clients: Clients, names: str, broker: str, seconds: float, seed: int, modes: Sequence[str]
) -> list[Outcome]:
    """Run a group of each mode, all at a time.

    Args:
        broker: its address.
    """
    topics = [f"Mixed-{mode}" for mode in modes]
    size = ("-r", str(QUEUES), "-w", str(QUEUES))
    clients.mqadmin(names, [("updateTopic", "-b", broker, "-t", topic, *size) for topic in topics])
    if "pop" in modes:
        mode = ("-t", "Mixed-pop", "-g", "mixed-pop-group", "-m", "POP", "-q", "8")
        clients.mqadmin(names, [("setConsumeMode", "-b", broker, *mode)])
    return asyncio.run(_run(clients, names, seconds, seed, modes))


async def _run(
    clients: Clients, names: str, seconds: float, seed: int, modes: Sequence[str]
) -> list[Outcome]:
    jvm = Jvm(clients, names)
    rooms = [Members(names, jvm, mode, seed) for mode in modes]
    collecting = asyncio.create_task(_collect(jvm))
    try:
        async with Producer(names) as producer, asyncio.TaskGroup() as group:
            tasks = [group.create_task(_live(names, producer, room, seconds)) for room in rooms]
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
    return [task.result() for task in tasks]


async def _collect(jvm: Jvm) -> None:
    while True:
        await jvm.collect()
        await asyncio.sleep(0.5)


async def _live(names: str, producer: Producer, room: Members, seconds: float) -> Outcome:
    dice, ledger = random.Random(room.mode), room.ledger
    for side in ("java", "python"):
        await room.join(side)
    observing = asyncio.create_task(_observe(names, room))
    sending = asyncio.create_task(_send(producer, room, seconds))
    try:
        while not sending.done():
            await asyncio.wait([sending], timeout=dice.uniform(*_CHANGES))
            if not sending.done():
                await room.change(MOST)
        sent = await sending
        begun = time.time()
        while _is_left(room, sent) and time.time() < begun + PATIENCE:  # noqa: ASYNC110 (Java too)
            await asyncio.sleep(0.2)
        drained = time.time() - begun
        if room.mode == "broadcasting":
            room.violations += _missed(room, sent)
    finally:
        sending.cancel()
        observing.cancel()
        await asyncio.gather(sending, observing, return_exceptions=True)
        await room.close()
    await asyncio.sleep(1)  # what Java does last
    await room.collect()
    ledger.deliveries.sort()
    stored = await read_all(names, [room.words[1]])
    found = [*room.violations, *ledger.violations(stored)]
    overlap = _overlap(room)
    if room.mode == "ordered":
        found += ledger.out_of_order()
        if overlap > 0:
            found.append(f"two members handled messages of one queue for {overlap:.3f} s")
    return Outcome(
        room.mode,
        sent,
        Counter("java" if "java" in each.who else "python" for each in ledger.deliveries),
        Counter(change.kind for change in room.changes),
        _repeated(room),
        len(ledger.observations),
        overlap,
        drained,
        found,
    )


async def _send(producer: Producer, room: Members, seconds: float) -> int:
    """Send numbered messages for a while, and on until there are enough; return how many."""
    number, end = 0, time.time() + seconds
    while time.time() < end or number < LEAST_SENT:
        label = str(number)
        key = f"{number % 30}" if room.mode == "ordered" else None
        message = Message(topic=room.words[1], body=f"{label} x".encode(), sharding_key=key)
        await producer.send(message, timeout=30)
        room.ledger.acknowledge(label)
        number += 1
        await asyncio.sleep(_PAUSE)
    return number


async def _observe(names: str, room: Members) -> None:
    """Note the offsets that the group has committed."""
    if room.mode not in ("concurrent", "ordered"):
        return
    _, topic, group = room.words
    async with PullConsumer(names, group) as reader:
        queues = await reader.queues_of(topic)
        while True:
            for queue in queues:
                with suppress(MqlakeError):
                    offset = await reader.committed(queue)
                    if offset is not None:
                        room.ledger.observe(queue, offset)
            await asyncio.sleep(0.3)


def _is_left(room: Members, sent: int) -> bool:
    """Whether something is still to be consumed."""
    ledger = room.ledger
    is_missed = room.mode == "broadcasting" and bool(_missed(room, sent))
    return bool(ledger.unconsumed or ledger.unretried or is_missed)


def _missed(room: Members, sent: int) -> list[str]:
    """Return which members that are there have not had all messages, one line each."""
    seen: dict[str, set[str]] = {name: set() for name in room.since}
    for each in room.ledger.deliveries:
        if each.who in seen:
            seen[each.who].add(each.label)
    return [
        f"{who}: {sent - len(labels)} messages were not broadcast to it"
        for who, labels in seen.items()
        if len(labels) < sent
    ]


def _repeated(room: Members) -> Counter[str]:
    """Return how many deliveries repeated an earlier one, by the cause."""
    found: Counter[str] = Counter()
    before: dict[tuple[str, str], Delivery] = {}
    for delivery in room.ledger.deliveries:
        who = delivery.who if room.mode == "broadcasting" else ""
        first = before.setdefault((who, delivery.label), delivery)
        if first is not delivery:
            found[_cause(room, first, delivery)] += 1
    return found


def _cause(room: Members, first: Delivery, again: Delivery) -> str:
    if any(first.at <= at <= again.at for at in room.ledger.failed.get(first.message_id, ())):
        return "it failed"
    changes = (change for change in room.changes if _is_near(change, first, again))
    return "the group changed" if any(changes) else "unexplained"


def _is_near(change: Change, first: Delivery, again: Delivery) -> bool:
    return change.begun - _NEAR <= again.at and first.at <= change.ended + _NEAR


def _overlap(room: Members) -> float:
    """Return the most seconds for which two members handled messages of one queue."""
    longest, busy = 0.0, dict[MessageQueue, tuple[float, str]]()
    for each in room.ledger.deliveries:
        queue = each.place.queue
        until, who = busy.get(queue, (0.0, each.who))
        end = _handled(room, each)
        if who != each.who:
            longest = max(longest, min(until, end) - each.at)
        if end >= until:
            busy[queue] = end, each.who
    return longest


def _handled(room: Members, delivery: Delivery) -> float:
    """Return when a member was done with a message."""
    ledger = room.ledger
    ends = [*ledger.failed.get(delivery.message_id, ()), ledger.finished.get(delivery.place, 0.0)]
    return min((end for end in ends if end >= delivery.at), default=delivery.at)
