"""Simple consumers: receipts, times, filters."""

from __future__ import annotations

from tests.peer.grpc.rig import Observation, Rig, Scenario, deliveries, shown


async def _receipts(rig: Rig) -> Observation:
    """Messages are acknowledged, hidden for longer or shorter, or come again."""
    await rig.simple()
    await rig.producer()
    await rig.send_all([str(number) for number in range(4)])
    first = await rig.received(4)
    await rig.send("4")
    first += await rig.received(1, hidden=10)
    by_body = {each["body"]: each["receipt"] for each in first}
    for body in ("0", "1"):
        await rig.do("ack", "c", receipt=by_body[body])
    await rig.do("hide", "c", receipt=by_body["2"], seconds=1)
    await rig.do("hide", "c", receipt=by_body["3"], seconds=300)
    # The client has the new receipt now.
    acknowledged = await rig.refusal(rig.do("ack", "c", receipt=by_body["3"]))
    again = await rig.received(2, acks=True)
    return {
        "first": sorted(deliveries(first)),
        "hidden message acknowledged": acknowledged,
        "again": sorted(deliveries(again)),
        "late ack": await rig.refusal(rig.do("ack", "c", receipt=by_body["4"])),
        "late change": await rig.refusal(rig.do("hide", "c", receipt=by_body["4"], seconds=20)),
        "left": shown(await rig.receive()),
    }


async def _attempts(rig: Rig) -> Observation:
    """A message that nobody acknowledges comes until its attempts are used up."""
    await rig.simple()
    await rig.producer()
    await rig.send("again")
    seen = []
    for _ in range(3):
        (message,) = await rig.received(1)
        seen.append(message["attempt"])
        await rig.do("hide", "c", receipt=message["receipt"], seconds=1)
    # The message moves when it is received once more.
    left = []
    while not await rig.messages_in(f"%DLQ%{rig.group}"):
        left += await rig.receive()
    return {"attempts": seen, "dead letters": 1, "left": shown(left)}


async def _filters(rig: Rig) -> Observation:
    """Tags and SQL say which messages a group gets."""
    await rig.producer()
    expressions = {
        "one tag": ("tag", "a"),
        "two tags": ("tag", "a || b"),
        "SQL": ("sql", "(colour = 'blue' AND size > 3) OR TAGS = 'b'"),
        "all": ("tag", "*"),
    }
    for name, (kind, text) in expressions.items():
        await rig.simple(name, text, kind, group=rig.group_named(name))
    await rig.send("a blue 5", tag="a", properties={"colour": "blue", "size": "5"})
    await rig.send("a blue 2", tag="a", properties={"colour": "blue", "size": "2"})
    await rig.send("b", tag="b")
    await rig.send("c", tag="c")
    await rig.send("none")
    found: dict[str, object] = {}
    for (name, _), count in zip(expressions.items(), (2, 3, 2, 5), strict=True):
        found[name] = sorted(deliveries(await rig.received(count, name, acks=True)))
    return found


async def _fifo_receipts(rig: Rig) -> Observation:
    """In a group that consumes in order, an unacknowledged message holds up what follows it."""
    await rig.simple()
    await rig.producer()
    for number in range(3):
        await rig.send(f"first {number}", group="g")
    first = await rig.received(3, hidden=10)
    order = [each["body"] for each in first]
    while_held = await rig.receive()
    await rig.do("ack", "c", receipt=first[0]["receipt"])
    again = await rig.received(2)
    for each in again:
        await rig.do("ack", "c", receipt=each["receipt"])
    return {
        "order": order,
        "while unacknowledged": shown(while_held),
        "again": [f"{each['body']} #{each['attempt']}" for each in again],
        "left": shown(await rig.receive()),
    }


async def _several_groups(rig: Rig) -> Observation:
    """Each group gets every message; consumers of one group share them."""
    await rig.push("a1", group=rig.group_named("a"))
    await rig.push("a2", group=rig.group_named("a"))
    await rig.push("b", group=rig.group_named("b"))
    await rig.producer()
    await rig.send_all([str(number) for number in range(20)])
    of_b = await rig.seen(20, "b")
    shared = []
    while len(shared) < 20:
        shared = await rig.do("seen", "a1") + await rig.do("seen", "a2")
    return {
        "of one": sorted(int(each["body"]) for each in of_b),
        "of two": sorted(int(each["body"]) for each in shared),
    }


SCENARIOS = (
    Scenario("receipts", _receipts),
    Scenario("attempts", _attempts, retries=2),
    Scenario("filters", _filters, groups=("one tag", "two tags", "SQL", "all")),
    Scenario("fifo receipts", _fifo_receipts, "FIFO", is_orderly=True, queues=1, is_long=True),
    Scenario("several groups", _several_groups, groups=("a", "b"), is_long=True),
)
