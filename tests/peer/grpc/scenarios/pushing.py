"""Push consumers: failures, dead letters, order."""

from __future__ import annotations

from tests.peer.grpc.rig import Observation, Rig, Scenario, deliveries

RETRY_IN_ORDER = ("python", "java")
"""Languages whose clients try a message again, in order; that for Node.js does not."""


async def _retries(rig: Rig) -> Observation:
    """Messages whose consumption fails come again."""
    await rig.push()
    await rig.producer()
    await rig.send_all(["fail 1 time", "fail 0 times"])
    seen = await rig.seen(3)
    return dict(sorted(deliveries(seen).items()))


async def _dead_letters(rig: Rig) -> Observation:
    """A message that always fails becomes a dead letter after its last attempt."""
    await rig.push()
    await rig.producer()
    await rig.send_all(["fail 9 times", "fine"])
    seen = await rig.seen(3)
    found = await rig.until_messages_in(f"%DLQ%{rig.group}", 1)
    return {"seen": dict(sorted(deliveries(seen).items())), "dead letters": found}


async def _fifo_retries(rig: Rig) -> Observation:
    """In order, a message that fails is tried again before its successors come."""
    await rig.push()
    await rig.producer()
    for body in ("first", "fail 1 time", "last"):
        await rig.send(body, group="g")
    seen = await rig.seen(lambda found: len(found) >= 4)
    return [f"{each['body']} #{each['attempt']}" for each in seen]


async def _fifo_dead_letters(rig: Rig) -> Observation:
    """In order, a message that always fails makes way at last."""
    await rig.push()
    await rig.producer()
    for body in ("first", "fail 9 times", "last"):
        await rig.send(body, group="g")
    seen = await rig.seen(lambda found: len(found) >= 4)
    found = await rig.until_messages_in(f"%DLQ%{rig.group}", 1)
    return {
        "seen": [f"{each['body']} #{each['attempt']}" for each in seen],
        "dead letters": found,
    }


async def _filtered(rig: Rig) -> Observation:
    """Push consumers filter by SQL, too."""
    await rig.push(text="size > 3", kind="sql")
    await rig.producer()
    for size in (1, 5, 9):
        await rig.send(f"size {size}", properties={"size": str(size)})
    return sorted(deliveries(await rig.seen(2)))


SCENARIOS = (
    Scenario("retries", _retries),
    Scenario("dead letters", _dead_letters, retries=1),
    Scenario(
        "fifo retries",
        _fifo_retries,
        "FIFO",
        is_orderly=True,
        languages=RETRY_IN_ORDER,
        is_long=True,
    ),
    Scenario(
        "fifo dead letters",
        _fifo_dead_letters,
        "FIFO",
        is_orderly=True,
        retries=1,
        languages=RETRY_IN_ORDER,
    ),
    Scenario("push by SQL", _filtered, is_long=True),
)
