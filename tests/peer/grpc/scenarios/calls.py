"""Calls of the service without a client: every code, and everything that an answer has."""

from __future__ import annotations

import asyncio
import itertools
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from tests.peer.grpc.rig import Observation, Rig, Scenario

Request = Mapping[str, object]

_WORDS = {
    "messageId": "an id",
    "transactionId": "an id",
    "bornTimestamp": "a time",
    "storeTimestamp": "a time",
    "deliveryTimestamp": "a time",
    "bornHost": "a host",
    "storeHost": "a host",
    "recallHandle": "a handle",
    "host": "a host",
    "port": "a port",
    "nonce": "a nonce",
}
_PLACES = ("offset", "queueId", "queueOffset")
"""Depend on the queue, which is any one for a message without a group."""
_numbers = itertools.count()


def shape(answer: Any, *, name: str = "") -> Any:
    """Return an answer without what differs from run to run, and without texts of errors."""
    if isinstance(answer, dict):
        if set(answer) <= {"code", "message"} and "code" in answer:
            return answer["code"]
        kept = {key: each for key, each in sorted(answer.items()) if key not in _PLACES}
        return {key: shape(each, name=key) for key, each in kept.items()}
    if isinstance(answer, list):
        return [shape(each) for each in answer]
    if name == "receiptHandle":
        return f"{len(answer.split())} words"
    if name in _WORDS and answer:
        return _WORDS[name]
    return answer


def metadata(client: str = "", **more: str) -> dict[str, str]:
    """Return what a client says with each call."""
    return {
        "x-mq-client-id": client or f"caller@{next(_numbers)}",
        "x-mq-language": "PYTHON",
        "x-mq-client-version": "5.1.2",
        "x-mq-protocol": "v2",
        "x-mq-request-id": f"request-{next(_numbers)}",
        **more,
    }


class Caller:
    """Calls the service as one client would."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.id = f"{rig.topic}@{next(_numbers)}"
        self.endpoints: Request = {
            "scheme": "IPv4",
            "addresses": [{"host": "127.0.0.1", "port": 1}],
        }
        self.topic: Request = {"name": rig.topic}
        self.group: Request = {"name": rig.group}

    async def raw(self, method: str, request: Request, **more: Any) -> Any:
        """Call a method; return its answers as they are, one alone without a list."""
        said = more.pop("metadata", None)
        found = await self.rig.client.do(
            "call",
            method=method,
            request=request,
            metadata=metadata(self.id) if said is None else said,
            **more,
        )
        return found[0] if isinstance(found, list) and len(found) == 1 else found

    async def __call__(self, method: str, request: Request, **more: Any) -> Any:
        """Call a method; return what is compared of its answer."""
        return shape(await self.raw(method, request, **more))

    def message(self, body: bytes = b"body", **system: object) -> dict[str, Any]:
        """Return a message; a property None is left out."""
        properties: dict[str, object] = {
            "messageId": f"01A1B2C3D4E5F6000100000001{next(_numbers):08X}",
            "messageType": "NORMAL",
            "bodyEncoding": "IDENTITY",
            "bornHost": "here",
            "bornTimestamp": "2026-01-01T00:00:00Z",
            **system,
        }
        return {
            "topic": self.topic,
            "body": b64encode(body).decode(),
            "systemProperties": {key: each for key, each in properties.items() if each is not None},
        }

    async def send(self, *messages: dict[str, Any]) -> Any:
        """Send messages in one call."""
        return await self("SendMessage", {"messages": list(messages)})

    async def settings(self, kind: str, **more: object) -> Any:
        """Open a stream of commands with settings; return the server's answer."""
        await self.rig.client.do("telemetry", name=self.id, metadata=metadata(self.id))
        command = {
            "settings": {
                "clientType": kind,
                "accessPoint": self.endpoints,
                "requestTimeout": "3s",
                "userAgent": {"language": "PYTHON", "version": "5.1.2", "hostname": "h"},
                **more,
            }
        }
        await self.rig.client.do("tell", stream=self.id, command=command)
        return await self.told(1)

    async def told(self, count: int) -> Any:
        """Wait for commands of the server, or for the end of its stream."""
        while True:
            found = await self.rig.client.do("told", stream=self.id)
            if len(found["commands"]) >= count or found["end"]:
                return {"commands": shape(found["commands"]), "end": found["end"]}
            await asyncio.sleep(0.02)

    async def consume(self, kind: str = "SIMPLE_CONSUMER", **more: object) -> Any:
        """Be a consumer of the topic."""
        entry = {"topic": self.topic, "expression": {"type": "TAG", "expression": "*"}}
        subscription = {"group": self.group, "subscriptions": [entry], **more}
        return await self.settings(kind, subscription=subscription)

    def receiving(self, **more: object) -> dict[str, Any]:
        """Return a request for messages."""
        queue = {"topic": self.topic, "id": -1, "broker": {"name": "broker-a"}}
        return {
            "group": self.group,
            "messageQueue": queue,
            "filterExpression": {"type": "TAG", "expression": "*"},
            "batchSize": 32,
            "invisibleDuration": "30s",
            "longPollingTimeout": "5s",
            **more,
        }

    async def receive(self, **more: object) -> list[dict[str, Any]]:
        """Receive until there are messages; return them as they are."""
        while True:
            answers = await self.raw("ReceiveMessage", self.receiving(**more))
            answers = answers if isinstance(answers, list) else [answers]
            if messages := [each["message"] for each in answers if "message" in each]:
                return messages


async def _routes(rig: Rig) -> Observation:
    """Routes and assignments."""
    call = Caller(rig)
    ends = {"endpoints": call.endpoints}
    names = {
        "known": rig.topic,
        "unknown": f"{rig.topic}_missing",
        "system": "SCHEDULE_TOPIC_XXXX",
        "wrong": "wrong topic!",
        "blank": "",
        "long": "t" * 128,
        "retry": f"%RETRY%{rig.group}",
    }
    found: dict[str, object] = {}
    for name, topic in names.items():
        found[f"route {name}"] = await call("QueryRoute", {"topic": {"name": topic}, **ends})
    for name, topic in names.items():
        request = {"topic": {"name": topic}, "group": call.group, **ends}
        found[f"assignment {name}"] = await call("QueryAssignment", request)
    request = {"topic": call.topic, "group": {"name": "nobody"}, **ends}
    found["assignment unknown group"] = await call("QueryAssignment", request)
    request = {"topic": call.topic, "group": {"name": "wrong group!"}, **ends}
    found["assignment wrong group"] = await call("QueryAssignment", request)
    found["without endpoints"] = await call("QueryRoute", {"topic": call.topic})
    found["without client id"] = await call(
        "QueryRoute", {"topic": call.topic, **ends}, metadata={"x-mq-language": "PYTHON"}
    )
    found["without metadata"] = await call("QueryRoute", {"topic": call.topic, **ends}, metadata={})
    found["unknown language"] = await call(
        "QueryRoute", {"topic": call.topic, **ends}, metadata=metadata(**{"x-mq-language": "COBOL"})
    )
    return found


async def _settings(rig: Rig) -> Observation:
    """Settings of each kind of client, heartbeats and the end."""
    found: dict[str, object] = {}
    publishing = {"publishing": {"topics": [{"name": rig.topic}]}}
    producer = Caller(rig)
    beat = {"clientType": "PRODUCER"}
    found["heartbeat before"] = await producer("Heartbeat", beat)
    found["producer"] = await producer.settings("PRODUCER", **publishing)
    found["heartbeat"] = await producer("Heartbeat", beat)
    found["termination"] = await producer("NotifyClientTermination", {})
    found["heartbeat after"] = await producer("Heartbeat", beat)
    for kind in ("PUSH_CONSUMER", "SIMPLE_CONSUMER"):
        consumer = Caller(rig)
        beat = {"clientType": kind, "group": consumer.group}
        found[f"{kind} heartbeat before"] = await consumer("Heartbeat", beat)
        found[kind] = await consumer.consume(kind)
        found[f"{kind} heartbeat"] = await consumer("Heartbeat", beat)
        found[f"{kind} without group"] = await consumer("Heartbeat", {"clientType": kind})
        group = {"group": consumer.group}
        found[f"{kind} termination"] = await consumer("NotifyClientTermination", group)
        found[f"{kind} heartbeat after"] = await consumer("Heartbeat", beat)
    nothing = Caller(rig)
    found["neither"] = await nothing.settings("PRODUCER")
    unknown = Caller(rig)
    found["unknown topic"] = await unknown.settings(
        "PRODUCER", publishing={"topics": [{"name": f"{rig.topic}_missing"}]}
    )
    wrong = Caller(rig)
    found["wrong topic"] = await wrong.settings(
        "PRODUCER", publishing={"topics": [{"name": "wrong topic!"}]}
    )
    wrong = Caller(rig)
    found["wrong group"] = await wrong.settings(
        "SIMPLE_CONSUMER", subscription={"group": {"name": "wrong group!"}}
    )
    nobody = Caller(rig)
    found["stranger ends"] = await nobody("NotifyClientTermination", {})
    found["unspecified"] = await nobody("Heartbeat", {})
    return found


async def _sends(rig: Rig) -> Observation:
    """What a server refuses of messages."""
    call = Caller(rig)
    far = "2099-01-01T00:00:00Z"
    other = call.message() | {"topic": {"name": f"{rig.topic}_missing"}}
    system = call.message() | {"topic": {"name": "SCHEDULE_TOPIC_XXXX"}}
    wrong = call.message() | {"topic": {"name": "wrong topic!"}}

    def with_properties(**properties: str) -> dict[str, Any]:
        return call.message() | {"userProperties": properties}

    def group(size: int) -> dict[str, Any]:
        return call.message(messageType="FIFO", messageGroup="g" * size)

    wanted = {
        "nothing": (),
        "one": (call.message(),),
        "three": (call.message(), call.message(), call.message()),
        "of two topics": (call.message(), other),
        "unknown topic": (other,),
        "system topic": (system,),
        "wrong topic": (wrong,),
        "empty": (call.message(b""),),
        "limit": (call.message(b"x" * (4 << 20)),),
        "too long": (call.message(b"x" * ((4 << 20) + 1)),),
        "without id": (call.message(messageId=None),),
        "blank id": (call.message(messageId=" "),),
        "unspecified type": (call.message(messageType=None),),
        "fifo without group": (call.message(messageType="FIFO"),),
        "fifo": (group(5),),
        "group of 63": (group(63),),
        "group of 64": (group(64),),
        "blank group": (call.message(messageType="FIFO", messageGroup=" "),),
        "normal, in fact fifo": (call.message(messageGroup="g"),),
        "delay": (call.message(messageType="DELAY", deliveryTimestamp=far),),
        "transaction": (call.message(messageType="TRANSACTION"),),
        "priority": (call.message(messageType="PRIORITY", priority=1),),
        "negative priority": (call.message(messageType="PRIORITY", priority=-1),),
        "lite": (call.message(messageType="LITE", liteTopic="l"),),
        "blank tag": (call.message(tag=" "),),
        "tag with bar": (call.message(tag="a|b"),),
        "tag with control": (call.message(tag="a\x01"),),
        "tag": (call.message(tag="fine"),),
        "blank key": (call.message(keys=[" "]),),
        "key with control": (call.message(keys=["a\x01"]),),
        "keys": (call.message(keys=["k1", "k2"]),),
        "reserved property": (with_properties(KEYS="x"),),
        "sharding key": (with_properties(__SHARDINGKEY="x"),),
        "control in a key": (with_properties(**{"a\x02": "x"}),),
        "control in a value": (with_properties(a="x\x02"),),
        "blank property": (with_properties(**{"": "x"}),),
        "blank value": (with_properties(a=""),),
        "128": (with_properties(**{f"n{number}": "x" for number in range(128)}),),
        "129": (with_properties(**{f"n{number}": "x" for number in range(129)}),),
        "16 KiB": (with_properties(n="x" * ((16 << 10) - 1)),),
        "above 16 KiB": (with_properties(n="x" * (16 << 10)),),
        "not gzip": (call.message(b"not gzip", bodyEncoding="GZIP"),),
        "wrong digest": (call.message(bodyDigest={"type": "CRC32", "checksum": "0"}),),
        "right after wrong": (call.message(b""), call.message()),
    }
    return {name: await call.send(*messages) for name, messages in wanted.items()}


async def _fifo_sends(rig: Rig) -> Observation:
    """What goes to a topic of ordered messages."""
    call = Caller(rig)
    groups = [f"group {number}" for number in range(12)]
    offsets = []
    for group in groups:
        found = await call.raw(
            "SendMessage", {"messages": [call.message(messageType="FIFO", messageGroup=group)]}
        )
        offsets.append(int(found["entries"][0].get("offset", 0)))
    await call.consume()
    received: dict[str, object] = {}
    while len(received) < len(groups):
        for each in await call.receive():
            system = each["systemProperties"]
            received[system["messageGroup"]] = system.get("queueId", 0)
    return {
        "offsets": offsets,
        "queue of each group": dict(sorted(received.items())),
        "normal": await call.send(call.message()),
        "two": await call.send(
            call.message(messageType="FIFO", messageGroup="a"),
            call.message(messageType="FIFO", messageGroup="b"),
        ),
    }


async def _received(rig: Rig) -> Observation:
    """Everything that a received message has, and what is refused of receipts."""
    call = Caller(rig)
    before = await call("ReceiveMessage", call.receiving())
    settings = await call.consume()
    beat = await call("Heartbeat", {"clientType": "SIMPLE_CONSUMER", "group": call.group})
    full = call.message(b"full", tag="t", keys=["k1", "k2"], traceContext="trace")
    full["userProperties"] = {"colour": "blue"}
    await call.send(full)
    (message,) = await call.receive()
    handle = message["systemProperties"]["receiptHandle"]
    one = {"messageId": message["systemProperties"]["messageId"]}
    base = {"group": call.group, "topic": call.topic}

    async def ack(*handles: str) -> Any:
        entries = [{**one, "receiptHandle": each} for each in handles]
        return await call("AckMessage", {**base, "entries": entries})

    async def change(handle: str, **more: object) -> Any:
        request = {**base, **one, "receiptHandle": handle, "invisibleDuration": "20s", **more}
        given = {key: each for key, each in request.items() if each is not None}
        return await call("ChangeInvisibleDuration", given)

    async def forward(handle: str) -> Any:
        more = {"deliveryAttempt": 1, "maxDeliveryAttempts": 3}
        request = {**base, **one, "receiptHandle": handle, **more}
        return await call("ForwardMessageToDeadLetterQueue", request)

    old = re.sub(r"^(\d+) \d+", r"\1 1600000000000", handle)
    return {
        "before settings": before,
        "settings": bool(settings),
        "heartbeat": beat,
        "message": shape(message),
        "order": await _order(call),
        "ack nothing": await ack(),
        "ack wrong": await ack("wrong"),
        "ack blank": await ack(""),
        "ack old": await ack(old),
        "ack 8 words": await ack(" ".join(old.split(" ")[:8])),
        "ack 7 words": await ack(" ".join(handle.split(" ")[:7])),
        "ack other broker": await ack(handle.replace("broker-a", "broker-x")),
        "ack mixed": await ack(handle, old),
        "ack again": await ack(handle),
        "change wrong": await change("wrong"),
        "change old": await change(old),
        "change to 0": await change(await _fresh(call, "zero"), invisibleDuration="0s"),
        "change to less": await change(handle, invisibleDuration="-1s"),
        "change to 13 h": await change(handle, invisibleDuration="46800s"),
        "change without time": await change(await _fresh(call, "none"), invisibleDuration=None),
        "forward wrong": await forward("wrong"),
        "forward 8 words": await forward(" ".join(handle.split(" ")[:8])),
    }


async def _fresh(call: Caller, text: str) -> str:
    """Return the receipt handle of a message that nobody has settled."""
    body = text.encode()
    await call.send(call.message(body))
    while True:
        for each in await call.receive():
            if each["body"] == b64encode(body).decode():
                return each["systemProperties"]["receiptHandle"]


async def _order(call: Caller) -> Any:
    """Return what the answers to one call are, in their order; many messages count once."""
    await call.send(call.message(b"a"), call.message(b"b"))
    while True:
        answers = await call.raw("ReceiveMessage", call.receiving())
        if isinstance(answers, list) and any("message" in each for each in answers):
            return list(dict.fromkeys(key for each in answers for key in each))


async def _receives(rig: Rig) -> Observation:
    """What is refused of requests for messages."""
    call = Caller(rig)
    await call.consume()
    queue = {"topic": call.topic, "id": -1, "broker": {"name": "broker-a"}}
    unknown = {"topic": {"name": f"{rig.topic}_missing"}, "id": -1}
    wanted: dict[str, dict[str, Any]] = {
        "nothing": {},
        "invisible for 1 s": {"invisibleDuration": "1s"},
        "invisible for 13 h": {"invisibleDuration": "46800s"},
        "without invisible": {"invisibleDuration": None},
        "wrong SQL": {"filterExpression": {"type": "SQL", "expression": "colour ="}},
        "wrong tags": {"filterExpression": {"type": "TAG", "expression": "||"}},
        "no filter": {"filterExpression": None},
        "unknown topic": {"messageQueue": unknown},
        "unknown broker": {"messageQueue": {**queue, "broker": {"name": "broker-x"}}},
        "blank broker": {"messageQueue": {"topic": call.topic, "id": -1}},
        "queue 1": {"messageQueue": {**queue, "id": 1}},
        "queue 99": {"messageQueue": {**queue, "id": 99}},
        "system topic": {"messageQueue": {**queue, "topic": {"name": "SCHEDULE_TOPIC_XXXX"}}},
        "wrong group": {"group": {"name": "wrong group!"}},
        "unknown group": {"group": {"name": f"{rig.group}_missing"}},
        "batch of 0": {"batchSize": 0},
        "batch of 100": {"batchSize": 100},
        "long poll of 0": {"longPollingTimeout": "0s"},
        "without poll time": {"longPollingTimeout": None},
        "short deadline": {"timeout": 2},
        "auto renew": {"autoRenew": True},
    }

    async def one(more: dict[str, Any]) -> Any:
        timeout = more.pop("timeout", 30)
        request = {key: each for key, each in call.receiving(**more).items() if each is not None}
        return await call("ReceiveMessage", request, timeout=timeout)

    found = await asyncio.gather(*map(one, wanted.values()))
    return dict(zip(wanted, found, strict=True))


async def _others(rig: Rig) -> Observation:
    """Transactions, recalls, lite topics and pulls."""
    call = Caller(rig)
    end = {"topic": call.topic, "messageId": "x", "resolution": "COMMIT"}
    sent = await call.raw("SendMessage", {"messages": [call.message(messageType="TRANSACTION")]})
    entry = sent["entries"][0] if "entries" in sent else {}
    ids = {"messageId": entry.get("messageId", ""), "transactionId": entry.get("transactionId", "")}
    source = {"source": "SOURCE_CLIENT"}
    lite = {"topic": call.topic, "group": call.group, "liteTopicSet": ["a"]}
    queue = {"topic": call.topic, "id": 0, "broker": {"name": "broker-a"}}
    return {
        "half message": shape(sent),
        "same id twice": entry.get("messageId") == entry.get("transactionId"),
        "blank transaction": await call("EndTransaction", {**end, "transactionId": ""}),
        "unknown transaction": await call("EndTransaction", {**end, "transactionId": "unknown"}),
        "no resolution": await call("EndTransaction", {"topic": call.topic, **ids, **source}),
        "commit": await call("EndTransaction", {**end, **ids, **source}),
        "commit again": await call("EndTransaction", {**end, **ids, **source}),
        "unknown topic": await call(
            "EndTransaction", {**end, "topic": {"name": "missing"}, "transactionId": "x"}
        ),
        "recall wrong": await call("RecallMessage", {"topic": call.topic, "recallHandle": "x"}),
        "recall blank": await call("RecallMessage", {"topic": call.topic}),
        "lite": await call("SyncLiteSubscription", lite),
        "pull": await call("PullMessage", {"group": call.group, "messageQueue": queue}),
        "update offset": await call("UpdateOffset", {"group": call.group, "messageQueue": queue}),
        "get offset": await call("GetOffset", {"group": call.group, "messageQueue": queue}),
        "query offset": await call("QueryOffset", {"messageQueue": queue}),
    }


CALLERS = ("python",)
"""The language whose program calls methods without a client."""

SCENARIOS = (
    Scenario("routes", _routes, languages=CALLERS),
    Scenario("routes in order", _routes, "FIFO", languages=CALLERS, is_orderly=True),
    Scenario("settings", _settings, languages=CALLERS, retries=3),
    Scenario("settings in order", _settings, "FIFO", languages=CALLERS, is_orderly=True),
    Scenario("sends", _sends, languages=CALLERS),
    Scenario("sends to fifo", _fifo_sends, "FIFO", languages=CALLERS, queues=4),
    Scenario("received", _received, languages=CALLERS),
    Scenario("receives", _receives, languages=CALLERS),
    Scenario("others", _others, "TRANSACTION", languages=CALLERS),
)
