"""python -m benchmarks.grpc.proxies: mqlake's gRPC service beside RocketMQ's proxy in local mode.

Both run all the time; their turns alternate. One client sends single messages, batches, and
receives and acknowledges. What counts is the CPU time of the server's process, user and system,
for each message; the client's own speed does not matter then. Memory is the resident size after
the last turn. The start is from the launch of the process, on a store with the topic, to the first
message that is accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from tests.peer.grpc.sides import BROKER, JAVA, MQLAKE, Java, Mqlake, Side

from benchmarks.grpc.libraries import cpu_of
from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.grpc.messages import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    Broker,
    ClientType,
    Code,
    Duration,
    Message,
    MessageQueue,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    Settings,
    Subscription,
    SystemProperties,
    TelemetryCommand,
)

IN_FLIGHT = 64
BATCH = 32
BODY = bytes(128)
TOPIC, GROUP = Resource(name="measured"), Resource(name="G_measured")
JVM = ("-Xms1g", "-Xmx1g")
METADATA = (
    ("x-mq-client-id", "host@4711@0@abcdefgh"),
    ("x-mq-language", "PYTHON"),
    ("x-mq-client-version", "5.1.2"),
    ("x-mq-protocol", "GRPC_V2"),
)
_SERVICE = "/apache.rocketmq.v2.MessagingService/"
_KIB = 1024


class MeasuredJava(Java):
    """RocketMQ's proxy with the heap that the other benchmarks give it."""

    def _options(self) -> Sequence[str]:
        return JVM


SIDES: Mapping[str, type[Side]] = {MQLAKE: Mqlake, JAVA: MeasuredJava}


class Caller:
    """A client on one connection."""

    def __init__(self, endpoint: str) -> None:
        channel = self._channel = grpc.aio.insecure_channel(endpoint)
        self._send = channel.unary_unary(
            f"{_SERVICE}SendMessage",
            request_serializer=SendMessageRequest.SerializeToString,
            response_deserializer=SendMessageResponse.FromString,
        )
        self._ack = channel.unary_unary(
            f"{_SERVICE}AckMessage",
            request_serializer=AckMessageRequest.SerializeToString,
            response_deserializer=AckMessageResponse.FromString,
        )
        self._receive = channel.unary_stream(
            f"{_SERVICE}ReceiveMessage",
            request_serializer=ReceiveMessageRequest.SerializeToString,
            response_deserializer=ReceiveMessageResponse.FromString,
        )
        self._telemetry = channel.stream_stream(
            f"{_SERVICE}Telemetry",
            request_serializer=TelemetryCommand.SerializeToString,
            response_deserializer=TelemetryCommand.FromString,
        )
        self._number = 0

    async def open(self) -> None:
        """Send settings, on a stream that stays open."""
        self._stream = self._telemetry(metadata=METADATA)
        subscription = Subscription(group=GROUP)
        settings = Settings(client_type=ClientType.SIMPLE_CONSUMER, subscription=subscription)
        await self._stream.write(TelemetryCommand(settings=settings))
        await self._stream.read()

    def _message(self) -> Message:
        self._number += 1
        properties = SystemProperties(message_id=f"{self._number:034X}", tag="t")
        return Message(topic=TOPIC, system_properties=properties, body=BODY)

    async def send(self, count: int = 1) -> int:
        """Send messages in one call; return how many."""
        request = SendMessageRequest(messages=[self._message() for _ in range(count)])
        response = await self._send(request, metadata=METADATA, timeout=60)
        if response.status.code != Code.OK:
            raise RuntimeError(str(response.status))
        return count

    async def consume(self) -> int:
        """Receive messages and acknowledge them in one call; return how many."""
        request = ReceiveMessageRequest(
            group=GROUP,
            message_queue=MessageQueue(topic=TOPIC, id=-1, broker=Broker(name=BROKER)),
            batch_size=BATCH,
            invisible_duration=Duration(seconds=60),
            long_polling_timeout=Duration(seconds=5),
        )
        entries: list[AckMessageEntry] = []
        async for each in self._receive(request, metadata=METADATA, timeout=60):
            if each.HasField("message"):
                system = each.message.system_properties
                entries.append(
                    AckMessageEntry(
                        message_id=system.message_id, receipt_handle=system.receipt_handle
                    )
                )
        if entries:
            request = AckMessageRequest(group=GROUP, topic=TOPIC, entries=entries)
            response = await self._ack(request, metadata=METADATA, timeout=60)
            if response.status.code != Code.OK:
                raise RuntimeError(str(response.status))
        return len(entries)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


async def turn(
    side: Side, act: Callable[[], Awaitable[int]], count: int, at_once: int = IN_FLIGHT
) -> float:
    """Return how many messages the server handles in a CPU second.

    Args:
        act: one call; returns the messages that it handles.
        count: messages of the turn.
    """
    left = count
    began = _cpu(side)

    async def work() -> None:
        nonlocal left
        while left > 0:
            handled = await act()
            left -= handled

    await asyncio.gather(*(work() for _ in range(at_once)))
    return (count - left) / max(_cpu(side) - began, 0.01)


def _cpu(side: Side) -> float:
    return sum(cpu_of(process) for process in side.process_ids)


def _resident(side: Side) -> float:
    """Return the MiB of memory that a side's processes have."""
    sizes = [
        int(line.split()[1])
        for process in side.process_ids
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    ]
    return sum(sizes) / _KIB


async def _prepare(side: Side) -> None:
    async with Admin(side.names) as admin:
        topic = Topic(topic_name=TOPIC.name, read_queue_nums=8, write_queue_nums=8)
        await topics.update(admin, topic, None, BROKER, "+message.type=NORMAL")
        await groups.update(admin, SubscriptionGroup(group_name=GROUP.name), None, BROKER)


async def start(side: Side) -> float:
    """Start a side on its store; return the seconds to its first message."""
    began = time.monotonic()
    await asyncio.to_thread(side.start)
    while True:
        caller = Caller(side.endpoint)
        try:
            await caller.send()
        except (grpc.aio.AioRpcError, RuntimeError):
            await asyncio.sleep(0.01)
        else:
            return time.monotonic() - began
        finally:
            await caller.close()


async def measured(sides: Mapping[str, Side], rounds: int, count: int) -> dict[str, Any]:
    """Return the medians of each side."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in sides}
    callers: dict[str, Caller] = {}
    for name, side in sides.items():
        await asyncio.to_thread(side.start)
        await _prepare(side)
        await asyncio.to_thread(side.kill)
        found[name]["start to first message, s"] = [await start(side)]
        callers[name] = Caller(side.endpoint)
        await callers[name].open()
    for number in range(rounds + 1):
        for name, side in sides.items():
            caller = callers[name]
            turns = {
                "send 1": await turn(side, caller.send, count),
                f"send {BATCH}": await turn(side, lambda each=caller: each.send(BATCH), count * 8),
                "receive and acknowledge": await turn(side, caller.consume, count * 8, 4),
            }
            if number:  # the first round warms up
                for what, rate in turns.items():
                    found[name].setdefault(f"{what}, messages per CPU-s", []).append(rate)
    for name, side in sides.items():
        found[name]["resident memory, MiB"] = [_resident(side)]
        await callers[name].close()
    return {
        name: {what: statistics.median(values) for what, values in each.items()}
        for name, each in found.items()
    }


def main() -> int:
    """Print each side's figures and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grpc.proxies")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=2000, help="single messages of a turn")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proxies-") as directory:
        sides = {name: kind(Path(directory) / kind.__name__) for name, kind in SIDES.items()}
        try:
            found = asyncio.run(measured(sides, arguments.rounds, arguments.count))
        finally:
            for side in sides.values():
                side.kill()
    if arguments.json:
        print(json.dumps(found))
        return 0
    for what, ours in found[MQLAKE].items():
        theirs = found[JAVA][what]
        print(f"{what}: {MQLAKE} {ours:,.1f}, {JAVA} {theirs:,.1f}, ratio {ours / theirs:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
