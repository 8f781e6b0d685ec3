"""Producers: messages of every type."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict

from tests.peer.grpc.driver import RefusedError
from tests.peer.grpc.rig import Observation, Rig, Scenario, shown

KIB = 1 << 10
RECEIVE_MOST = ("python", "java")
"""Languages whose clients receive what they send: others allow answers of 4 MiB only."""


async def _normal(rig: Rig) -> Observation:
    """Everything that a message has reaches a push consumer."""
    await rig.push()
    await rig.producer()
    ids = await rig.send_all(["plain"])
    ids |= await rig.send_all(["tagged"], tag="a", keys=["k1", "k2"])
    ids |= await rig.send_all(["with properties"], properties={"colour": "blue", "größe": "ü€"})
    ids |= await rig.send_all([f"more {number}" for number in range(5)], tag="b")
    seen = await rig.seen(len(ids))
    return {
        "seen": shown(seen),
        "ids": all(ids[each["body"]] == each["id"] for each in seen),
        "born host": all(each["born_host"] for each in seen),
        "topics": Counter(each["topic"] == rig.topic for each in seen)[True] == len(seen),
    }


async def _large(rig: Rig) -> Observation:
    """Bodies that clients compress, up to the limit and past it."""
    await rig.push()
    await rig.producer()
    found: dict[str, object] = {}
    for size in (5 * KIB, 1024 * KIB):
        found[f"{size} bytes"] = await rig.refusal(rig.send("x", times=size))
    seen = await rig.seen(2)
    for size in (4096 * KIB, 4096 * KIB + 1):
        found[f"{size} bytes"] = await rig.refusal(rig.send("x", times=size))
    if rig.client.language in RECEIVE_MOST:
        seen = await rig.seen(3)
    return {"sends": found, "seen": shown(seen)}


async def _fifo(rig: Rig) -> Observation:
    """Messages of a group come in order."""
    await rig.push()
    await rig.producer()
    for number in range(5):
        for group in ("one", "two", "three"):
            await rig.send(f"{group} {number}", group=group)
    by_group: defaultdict[str, list[str]] = defaultdict(list)
    for each in await rig.seen(15):
        by_group[each["group"]].append(f"{each['body']} #{each['attempt']}")
    return dict(sorted(by_group.items()))


async def _delay(rig: Rig) -> Observation:
    """Messages for later come later, those for the past at once."""
    await rig.push()
    await rig.producer()
    due = {}
    for seconds in (4, 2, -5):
        # Of the time before the send: a slow machine may take seconds for it.
        due[f"after {seconds}"] = time.time() + seconds
        await rig.send(f"after {seconds}", delay=seconds)
    seen = await rig.seen(3)
    # Clients send whole seconds, and RocketMQ's timers have a precision of one.
    return {
        "seen": shown(seen),
        "early": [each["body"] for each in seen if each["at"] < due[each["body"]] - 2.1],
        "in two days": await rig.refusal(rig.send("far", delay=172_800)),
    }


async def _recall(rig: Rig) -> Observation:
    """A recalled message does not come."""
    await rig.push()
    await rig.producer()
    for delay in (10, 20, 40, 80):
        recalled = await rig.send(f"recalled {delay}", delay=delay)
        kept = await rig.send(f"kept {delay}", delay=delay)
        asked = rig.do("recall", topic=rig.topic, handle=recalled["recall"])
        try:
            same_id = await asked == recalled["id"]
            break
        except RefusedError:
            if delay == 80:
                raise
            # A slow machine has taken too long: the message is delivered already.
    await rig.seen(lambda found: any(each["body"] == f"kept {delay}" for each in found))
    await asyncio.sleep(2)
    bodies = [each["body"] for each in await rig.seen(1)]
    return {
        "handles": [bool(recalled["recall"]), bool(kept["recall"])],
        "same id": same_id,
        "seen": [body.split()[0] for body in bodies if body.endswith(f" {delay}")],
        "wrong handle": await rig.refusal(rig.do("recall", topic=rig.topic, handle="wrong")),
    }


async def _transaction(rig: Rig) -> Observation:
    """Transactions end at once, or when the server asks."""
    await rig.push()
    await rig.producer(checks=True)
    endings = ("commit", "rollback", "late commit", "late rollback")
    for number in range(2):
        for ending in endings:
            body = f"{ending} {number}"
            await rig.send(body, transaction=f"{rig.topic} {body}")
            if not ending.startswith("late"):
                name = f"{rig.topic} {body}"
                await rig.client.do("end", transaction=name, commits=ending == "commit")
    seen = await rig.seen(lambda found: len({each["body"] for each in found}) >= 4)
    asked = set[str]()
    while len(asked) < 4:
        asked = {each for each in await rig.do("asked") if each.startswith("late")}
    # A transaction that is asked for again, before an answer is noted, may come twice.
    return {"seen": sorted({each["body"] for each in seen}), "asked": sorted(asked)}


async def _priority(rig: Rig) -> Observation:
    """Messages have a priority, where the topic takes it."""
    await rig.producer()
    for priority in (2, 3, 1, 7):
        await rig.send(f"priority {priority}", priority=priority)
    await rig.simple()
    received = await rig.received(4, acks=True)
    return sorted((each["body"], each["priority"]) for each in received)


SCENARIOS = (
    Scenario("normal", _normal),
    Scenario("large", _large),
    Scenario("fifo", _fifo, "FIFO", is_orderly=True),
    Scenario("delay", _delay, "DELAY"),
    Scenario("recall", _recall, "DELAY"),
    Scenario("transaction", _transaction, "TRANSACTION"),
    Scenario("priority", _priority, "PRIORITY"),
)
