"""Lite topics: RocketMQ's proxy serves them in cluster mode only."""

from __future__ import annotations

from collections.abc import Sequence

from tests.peer.grpc.rig import Message, Observation, Rig, Scenario, shown

LITE = "LITE"


def _by_lite_topic(messages: Sequence[Message]) -> dict[str, list[str]]:
    """Return the bodies of each lite topic's messages, in their order."""
    found: dict[str, list[str]] = {}
    for each in messages:
        found.setdefault(each["lite"], []).append(f"{each['body']} #{each['attempt']}")
    return dict(sorted(found.items()))


async def _follow(rig: Rig, *lites: str, name: str = "c") -> None:
    for lite in lites:
        await rig.do("follow", name, lite=lite)


async def _orders(rig: Rig) -> Observation:
    """Messages of each lite topic come in order, to consumers that are subscribed to it."""
    await rig.lite()
    await _follow(rig, "a", "b")
    await rig.producer()
    for number in range(3):
        for lite in "abc":
            await rig.send(f"{lite}{number}", lite=lite, tag="t", keys=["k"])
    first = await rig.seen(6)
    await rig.do("unfollow", "c", lite="a")
    await rig.send("a later", lite="a")
    await rig.send("b later", lite="b")
    all_of_them = await rig.seen(lambda found: any(each["body"] == "b later" for each in found))
    return {
        "in order": _by_lite_topic(first),
        "seen": shown(first[:1]),
        "after one is left": _by_lite_topic(all_of_them),
    }


async def _backlog(rig: Rig) -> Observation:
    """Messages that were sent before anybody was subscribed come, too."""
    await rig.producer()
    for number in range(4):
        await rig.send(str(number), lite="early")
    await rig.lite()
    await _follow(rig, "early")
    return _by_lite_topic(await rig.seen(4))


async def _failures(rig: Rig) -> Observation:
    """A message whose consumption fails comes again before its successors."""
    # The client for Node.js makes it a dead letter at once, because it does not know the kind of
    # backoff that groups in order have; the one for Python consumes what follows meanwhile.
    await rig.lite()
    await _follow(rig, "a", "b")
    await rig.producer()
    for body in ("fail 1 first", "second", "third"):
        await rig.send(body, lite="a")
    await rig.send("other", lite="b")
    found = await rig.seen(5)
    return {
        lite: [body.partition(" #")[0] for body in bodies]
        for lite, bodies in _by_lite_topic(found).items()
    }


async def _takeover(rig: Rig) -> Observation:
    """A lite topic of an exclusive group moves to the consumer that subscribes to it last."""
    await rig.lite("first")
    await _follow(rig, "a", name="first")
    await rig.producer()
    await rig.send("for the first", lite="a")
    of_first = await rig.seen(1, "first")
    await rig.lite("second")
    await _follow(rig, "a", name="second")
    await rig.send("for the second", lite="a")
    of_second = await rig.seen(1, "second")
    return {"first": _by_lite_topic(of_first), "second": _by_lite_topic(of_second)}


async def _refused(rig: Rig) -> Observation:
    """Messages and subscriptions that are refused."""
    await rig.lite()
    await rig.producer()
    await _follow(rig, "a", "b")
    return {
        "too many subscriptions": await rig.refusal(rig.do("follow", lite="c", client="c")),
        "no lite topic": await rig.refusal(rig.send("x")),
        "an empty lite topic": await rig.refusal(rig.send("x", lite=" ")),
        "a long lite topic": await rig.refusal(rig.send("x", lite="l" * 300)),
    }


SCENARIOS = (
    Scenario("lite topics", _orders, LITE, is_orderly=True),
    Scenario("lite backlog", _backlog, LITE, is_orderly=True),
    Scenario("lite failures", _failures, LITE, is_orderly=True, languages=("java",)),
    Scenario("lite takeover", _takeover, LITE, attributes={"+lite.sub.model": "Exclusive"}),
    Scenario("lite refused", _refused, LITE, attributes={"+lite.sub.client.quota": "2"}),
)
"""What the clients do."""
