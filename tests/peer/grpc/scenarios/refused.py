"""What servers and clients refuse."""

from __future__ import annotations

from tests.peer.grpc.rig import Observation, Rig, Scenario


async def _types(rig: Rig) -> Observation:
    """A topic takes messages of its own type."""
    await rig.producer()
    transaction = {"transaction": f"{rig.topic} t"}
    return {
        "normal": await rig.refusal(rig.send("normal")),
        "fifo": await rig.refusal(rig.send("fifo", group="g")),
        "delay": await rig.refusal(rig.send("delay", delay=5)),
        "priority": await rig.refusal(rig.send("priority", priority=1)),
        "transaction": await rig.refusal(rig.send("transaction", **transaction)),
    }


async def _properties(rig: Rig) -> Observation:
    """Properties have limits."""
    await rig.producer()
    many = {f"name{number}": "value" for number in range(129)}
    return {
        "reserved": await rig.refusal(rig.send("reserved", properties={"UNIQ_KEY": "x"})),
        "129": await rig.refusal(rig.send("many", properties=many)),
        "17 KiB": await rig.refusal(rig.send("long", properties={"name": "x" * (17 << 10)})),
        "control character": await rig.refusal(rig.send("control", properties={"a\x01b": "x"})),
        "long tag": await rig.refusal(rig.send("tag", tag="t" * (17 << 10))),
    }


async def _unknown(rig: Rig) -> Observation:
    """Topics that do not exist, and expressions that mean nothing."""
    missing = {f"{rig.topic}_missing": ("tag", "*")}
    await rig.producer()
    await rig.open("producer", "other", topics=[])
    return {
        "producer": await rig.refusal(rig.open("producer", "x", topics=[*missing])),
        "send": await rig.refusal(
            rig.do("send", "other", message={"topic": f"{rig.topic}_missing", "body": "x"})
        ),
        "simple": await rig.refusal(rig.open("simple", "y", group="G_y", subscriptions=missing)),
        "push": await rig.refusal(rig.open("push", "z", group="G_z", subscriptions=missing)),
    }


async def _no_group(rig: Rig) -> Observation:
    """A group does not exist (the client for Node.js would wait forever)."""
    missing = f"{rig.group}_missing"
    await rig.producer()
    await rig.send("x")
    opened = await rig.refusal(rig.simple("c", group=missing))
    if opened != "accepted":
        return {"start": opened}
    received = await rig.refusal(rig.do("receive", "c", most=1, hidden=10))
    return {"start": opened, "receive": received}


SCENARIOS = (
    Scenario("types", _types),
    Scenario("properties", _properties),
    Scenario("unknown group", _no_group, languages=("python", "java"), is_long=True),
    Scenario("unknown topics", _unknown, is_long=True),
)
