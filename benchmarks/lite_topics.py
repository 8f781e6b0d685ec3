"""python -m benchmarks.lite_topics: what very many lite topics cost a broker.

A broker in a process of its own gets messages of a normal topic, then messages of each lite topic.
It is killed, and started again; then consumers get the first message of some lite topics.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.record import decode
from mqlake.programs import ports
from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.headers.lite import PopLiteHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.client import RemotingClient

PARENT, NORMAL, GROUP = "Parent", "Normal", "group"
IN_FLIGHT = 512
PATIENCE = 300.0
FIRST = 1


class BenchedBroker:
    """A broker in a process."""

    def __init__(self, store: Path) -> None:
        self._store, self.port = store, ports.free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> float:
        """Return after how many seconds it answers."""
        begin = time.perf_counter()
        command = ["-m", "mqlake", "broker", "--store", str(self._store), "--port", str(self.port)]
        log = (self._store.parent / "broker.log").open("ab")
        options = ["--set", "enableLmq=true", "--set", "maxLiteSubscriptionCount=2000000"]
        self.process = subprocess.Popen(  # noqa: ASYNC220 (nothing else runs here)
            [sys.executable, *command, *options], stdout=log, stderr=subprocess.STDOUT
        )
        while True:
            client = RemotingClient(connect_timeout=1)
            try:
                asked = request(RequestCode.GET_BROKER_LITE_INFO)
                await client.request(self.address, asked, PATIENCE)
                return time.perf_counter() - begin
            except Exception:  # noqa: BLE001 (it does not listen yet)
                await asyncio.sleep(0.02)
            finally:
                await client.close()

    def memory(self) -> dict[str, int]:
        """Return its resident memory in MiB: all of it, and what is not in files."""
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        values = dict(line.split(":", 1) for line in lines if line.startswith(("VmRSS", "RssAnon")))
        return {name: int(text.split()[0]) >> 10 for name, text in values.items()}

    def kill(self) -> None:
        """End it at once."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def send_header(topic: str, properties: str) -> SendMessageHeaderV2:
    return SendMessageHeaderV2(
        producer_group="p",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties=properties,
    )


async def send_all(
    client: RemotingClient, address: str, count: int, make: Callable[[int], Command]
) -> float:
    """Return the messages a second."""
    begin, waiting = time.perf_counter(), set[asyncio.Task[Command]]()
    for number in range(count):
        waiting.add(asyncio.create_task(client.request(address, make(number), PATIENCE)))
        if len(waiting) >= IN_FLIGHT:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert all(task.result().code == ResponseCode.SUCCESS for task in done), done
    for task in waiting:
        assert (await task).code == ResponseCode.SUCCESS
    return count / (time.perf_counter() - begin)


async def first_messages(client: RemotingClient, address: str, names: list[str]) -> list[float]:
    """Return milliseconds from the request of a subscription to the first message."""
    found: list[float] = []
    for number, name in enumerate(names):
        change = LiteSubscriptionChange(
            "PARTIAL_ADD", f"c{number}", GROUP, PARENT, [name], LiteOffsetOption("POLICY", FIRST)
        )
        begin = time.perf_counter()
        asked = request(
            RequestCode.LITE_SUBSCRIPTION_CTL, body=encode_body(LiteSubscriptionChanges([change]))
        )
        assert (await client.request(address, asked, PATIENCE)).code == ResponseCode.SUCCESS
        header = PopLiteHeader(
            client_id=f"c{number}",
            consumer_group=GROUP,
            topic=PARENT,
            max_msg_num=1,
            invisible_time=60_000,
            poll_time=10_000,
            born_time=int(time.time() * 1000),
        )
        pop = request(RequestCode.POP_LITE_MESSAGE, header)
        answer = await client.request(address, pop, PATIENCE)
        found.append((time.perf_counter() - begin) * 1000)
        assert decode(answer.body).properties["__LITE_TOPIC"] == name
    return sorted(found)


async def measure(topics: int, messages: int, broker: BenchedBroker) -> dict[str, object]:
    """Return what it costs."""
    body = b"x" * 128
    first = await broker.start()
    client, address = RemotingClient(connect_timeout=PATIENCE), broker.address
    for name, kind in ((NORMAL, "NORMAL"), (PARENT, "LITE")):
        header = CreateTopicHeader(
            topic=name,
            default_topic="TBW102",
            read_queue_nums=4,
            write_queue_nums=4,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            attributes=f"+message.type={kind}",
        )
        asked = request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        assert (await client.request(address, asked, PATIENCE)).code == ResponseCode.SUCCESS
    group = SubscriptionGroup(GROUP, attributes={"+lite.bind.topic": PARENT})
    asked = request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(group))
    assert (await client.request(address, asked, PATIENCE)).code == ResponseCode.SUCCESS

    def normal(number: int) -> Command:
        header = send_header(NORMAL, f"KEYS\x01k{number}\x02")
        return request(RequestCode.SEND_MESSAGE_V2, header, body)

    def lite(number: int) -> Command:
        name = f"session-{number % topics}"
        header = send_header(PARENT, f"KEYS\x01k{number}\x02__LITE_TOPIC\x01{name}\x02")
        return request(RequestCode.SEND_MESSAGE_V2, header, body)

    count = topics * messages
    some = min(count, 50_000)
    before = broker.memory()
    await send_all(client, address, some // 5, normal)
    normal_rate = await send_all(client, address, some, normal)
    lite_rate = await send_all(client, address, count, lite)
    after = broker.memory()
    await client.close()
    broker.kill()
    restart = await broker.start()
    client = RemotingClient(connect_timeout=PATIENCE)
    dice = random.Random(1)
    names = [f"session-{dice.randrange(topics)}" for _ in range(200)]
    times = await first_messages(client, address, list(dict.fromkeys(names)))
    info = await client.request(address, request(RequestCode.GET_BROKER_LITE_INFO), PATIENCE)
    await client.close()
    memory = broker.memory()
    return {
        "lite topics": json.loads(bytes(info.body))["currentLmqNum"],
        "messages of each": messages,
        "normal, messages/s": round(normal_rate),
        "lite, messages/s": round(lite_rate),
        "ratio": round(lite_rate / normal_rate, 2),
        "memory before, MiB": before,
        "memory after the sends, MiB": after,
        "first start, s": round(first, 2),
        "restart after kill -9, s": round(restart, 2),
        "memory after the restart, MiB": memory,
        "first message, ms: median, p99": [
            round(times[len(times) // 2], 2),
            round(times[len(times) * 99 // 100], 2),
        ],
    }


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lite_topics")
    parser.add_argument("--topics", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lite-") as directory:
        broker = BenchedBroker(Path(directory) / "store")
        try:
            found = asyncio.run(measure(arguments.topics, arguments.messages, broker))
        finally:
            broker.kill()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
