"""python -m benchmarks.lite_topics: what very many lite topics cost a broker, against the bars.

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
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.bench import say
from benchmarks.broker.sides import cpu_seconds, resident
from benchmarks.machine import machine, versions
from benchmarks.page import page
from benchmarks.publishing import publish
from benchmarks.results import Bar, Results, Section, Series
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
SIZE = 128
"""Bytes of a body."""
COMPARED = 100_000
"""Messages of the normal topic, at most."""
SAMPLES = 1000
"""Lite topics whose first message is timed, at most."""
PATIENCE = 300.0
INTERVAL = 10.0
"""Seconds between lines of progress."""
FIRST = 1
FULL, MESSAGES = 1_000_000, 10
"""Lite topics, and messages of each, of a run whose figures are published."""
MEMORY, RESTART, RATIO, WAIT = 1 << 30, 10.0, 0.9, 0.005
"""The bars: bytes, seconds, share of the normal rate, seconds."""

METHOD = """\
`mqlake broker` with `ASYNC_FLUSH` gets {compared:,} messages of a normal topic, then {messages}
messages of each of {topics:,} lite topics of one parent topic, in turns. Bodies have {size} bytes.
One program sends them, with {in_flight} sends in flight. Then the broker is killed with SIGKILL and
started again; the restart ends with its first answer. At last, {samples:,} clients of a group each
subscribe to another lite topic, drawn at random, and pop its first message: the time is that of
both requests. Memory is that of the broker's process without pages of files. Broker and program
share the machine's cores."""


class BenchedBroker:
    """A broker in a process."""

    def __init__(self, store: Path) -> None:
        self._store, self.port = store, ports.free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> float:
        """Return after how many seconds it answers."""
        begin = time.perf_counter()
        command = ["-m", "mqlake", "broker", "--store", str(self._store), "--port", str(self.port)]
        log = (self._store.parent / "broker.log").open("ab")
        options = ["--set", "enableLmq=true", "--set", "maxLiteSubscriptionCount=2000000"]
        self._process = subprocess.Popen(  # noqa: ASYNC220 (nothing else runs here)
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

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


class Sent(msgspec.Struct, frozen=True):
    """What some sends took: messages, seconds, and processor seconds of the broker."""

    messages: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    def text(self, what: str) -> str:
        """Return it as a line."""
        cost = self.cpu / self.messages * 1e6
        return f"{what}: {self.rate:,.0f} messages/s, {cost:.1f} µs of the broker's CPU each"


class Measured(msgspec.Struct, frozen=True):
    """What was measured: seconds, bytes, and counts."""

    topics: int
    messages: int
    normal: Sent
    lite: Sent
    memory_before: int
    memory_after: int
    memory_restarted: int
    restart: float
    restart_cpu: float
    first_messages: list[float]

    @property
    def wait(self) -> float:
        """The 99th percentile of the waits for a first message."""
        return self.first_messages[len(self.first_messages) * 99 // 100]


def unique_key(number: int) -> str:
    """Return the property that RocketMQ's clients give each message."""
    return f"UNIQ_KEY\x017F0000010A2B18B4AAC2{number:012X}\x02"


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
    client: RemotingClient,
    broker: BenchedBroker,
    what: str,
    count: int,
    make: Callable[[int], Command],
) -> Sent:
    """Send messages; return what that took."""
    begin, waiting = time.perf_counter(), set[asyncio.Task[Command]]()
    told, cpu = begin, cpu_seconds(broker.process_id)
    for number in range(count):
        waiting.add(asyncio.create_task(client.request(broker.address, make(number), PATIENCE)))
        if len(waiting) >= IN_FLIGHT:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert all(task.result().code == ResponseCode.SUCCESS for task in done), done
        if (now := time.perf_counter()) - told >= INTERVAL:
            told, memory = now, resident(broker.process_id) >> 20
            rate = number / (now - begin)
            say(f"  {what}: {number:,} of {count:,} messages, {rate:,.0f}/s, {memory} MiB")
    for task in waiting:
        assert (await task).code == ResponseCode.SUCCESS
    seconds = time.perf_counter() - begin
    found = Sent(count, seconds, cpu_seconds(broker.process_id) - cpu)
    say(f"  {found.text(what)}")
    return found


async def first_messages(client: RemotingClient, address: str, names: list[str]) -> list[float]:
    """Return the seconds from each request for a subscription to the first message, sorted."""
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
        found.append(time.perf_counter() - begin)
        assert decode(answer.body).properties["__LITE_TOPIC"] == name
    return sorted(found)


async def create(client: RemotingClient, address: str) -> None:
    """Create the topics and the group."""
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


async def measure(topics: int, messages: int, broker: BenchedBroker) -> Measured:
    """Return what so many lite topics cost."""
    body = b"x" * SIZE
    await broker.start()
    client, address = RemotingClient(connect_timeout=PATIENCE), broker.address
    await create(client, address)

    def normal(number: int) -> Command:
        header = send_header(NORMAL, f"KEYS\x01k{number}\x02{unique_key(number)}")
        return request(RequestCode.SEND_MESSAGE_V2, header, body)

    def lite(number: int) -> Command:
        name = f"__LITE_TOPIC\x01{lite_name(number % topics)}\x02"
        properties = f"KEYS\x01k{number}\x02{unique_key(number)}{name}"
        return request(RequestCode.SEND_MESSAGE_V2, send_header(PARENT, properties), body)

    count = topics * messages
    some = min(count, COMPARED)
    await send_all(client, broker, "warm-up", some // 5, normal)
    before = resident(broker.process_id)
    of_normal = await send_all(client, broker, "normal topic", some, normal)
    of_lite = await send_all(client, broker, "lite topics", count, lite)
    after = resident(broker.process_id)
    await client.close()
    broker.kill()
    restart = await broker.start()
    cpu = cpu_seconds(broker.process_id)
    say(f"  restart after SIGKILL: {restart:.2f} s, {cpu:.2f} s of CPU")
    client = RemotingClient(connect_timeout=PATIENCE)
    numbers = random.Random(1).sample(range(topics), min(topics, SAMPLES))
    times = await first_messages(client, address, [lite_name(each) for each in numbers])
    info = await client.request(address, request(RequestCode.GET_BROKER_LITE_INFO), PATIENCE)
    await client.close()
    known = json.loads(bytes(info.body))["currentLmqNum"]
    assert known == topics, f"the broker has {known} lite topics"
    return Measured(
        topics=topics,
        messages=messages,
        normal=of_normal,
        lite=of_lite,
        memory_before=before,
        memory_after=after,
        memory_restarted=resident(broker.process_id),
        restart=restart,
        restart_cpu=cpu,
        first_messages=times,
    )


def lite_name(number: int) -> str:
    return f"session-{number}"


def section(found: Measured, begun: str) -> Section:
    """Return the section of the page."""
    method = METHOD.format(
        compared=found.normal.messages,
        messages=found.messages,
        topics=found.topics,
        size=SIZE,
        in_flight=IN_FLIGHT,
        samples=len(found.first_messages),
    )
    memory = max(found.memory_after, found.memory_restarted)
    mib = 1 << 20
    added = (found.memory_after - found.memory_before) / found.topics
    series = [
        Series(name, "s", [sent.seconds / sent.messages * 1_000_000], {"messages": 1_000_000})
        for name, sent in (("normal topic", found.normal), ("lite topics", found.lite))
    ]
    series += [
        Series("restart after SIGKILL", "s", [found.restart]),
        Series("first message of a lite topic", "s", found.first_messages),
        Series("memory before the sends", "B", [found.memory_before]),
        Series("memory after the sends", "B", [found.memory_after]),
        Series("memory after the restart", "B", [found.memory_restarted]),
    ]
    title = f"{found.topics:,} lite topics"
    bars = [
        Bar(f"{title}: memory of the broker", "<", MEMORY / mib, memory / mib, "MiB"),
        Bar(f"{title}: restart after SIGKILL", "<", RESTART, found.restart, "s"),
        Bar(
            f"{title}: sends a second, against a normal topic's",
            "≥",
            RATIO,
            found.lite.rate / found.normal.rate,
            "x",
        ),
        Bar(f"{title}: first message, p99", "<", WAIT * 1000, found.wait * 1000, "ms"),
    ]
    remarks = [
        found.normal.text("normal topic"),
        found.lite.text("lite topics"),
        f"the sends added {added:.0f} bytes of memory for each lite topic",
        f"the restart took {found.restart_cpu:.2f} s of CPU",
    ]
    return Section("lite_topics", f"Broker: {title}", method, series, bars, remarks, begun)


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print the result, and publish it if it is at full size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lite_topics")
    parser.add_argument("--topics", type=int, default=FULL)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of each lite topic")
    parser.add_argument("--directory", type=Path, help="for temporary files, 6 GiB")
    options = parser.parse_args(words)
    begun, state = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), machine()
    with tempfile.TemporaryDirectory(prefix="lite-", dir=options.directory) as directory:
        broker = BenchedBroker(Path(directory) / "store")
        try:
            found = asyncio.run(measure(options.topics, options.messages, broker))
        finally:
            broker.kill()
    results = Results(begun, state, versions(), {}, [section(found, begun)])
    print(page(results))
    if (options.topics, options.messages) == (FULL, MESSAGES):
        publish(results)
    else:
        say(f"not published: this takes --topics {FULL} --messages {MESSAGES}")


if __name__ == "__main__":
    main()
