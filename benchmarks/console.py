"""The console of a large cluster: how long pages take, and what they cost the broker.

    python -m benchmarks.console --topics 10000 --groups 10000 --clients 1000

starts a broker with that many topics, groups and connected consumers, and a console before it, each
in a process of its own. One visitor opens every page, and then opens a page every half second
(`--pause`) while a producer sends 100 messages a second. It prints the slowest of each page, and
the producer's p99 with the visitor and without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import msgspec

from benchmarks.machine import machine
from mqlake.client import Message, Producer
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup, SubscriptionGroups
from mqlake.formats.config.topics import Topic, Topics
from mqlake.programs.ports import free_port
from mqlake.protocol.bodies.heartbeat import ConsumerData, Heartbeat, Subscription
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient

RATE = 100
PAGES = (
    "/cluster",
    "/topics",
    "/topics?page=50",
    "/topics?q=topic-77",
    "/topics/topic?topic=topic-00042",
    "/groups",
    "/groups?q=group-77",
    "/groups?page=50",
    "/groups/group?group=group-00042",
    "/messages?topic=topic-00042&by=time",
    "/delayed",
    "/delayed/half",
    "/store",
    "/store/retention",
    "/store/verify",
    "/sql",
)


def fill(store: Path, topics: int, groups: int) -> None:
    """Write the tables of a broker that has many topics and groups."""
    config = store / "config"
    config.mkdir(parents=True)
    topic_table = {
        f"topic-{number:05d}": Topic(
            topic_name=f"topic-{number:05d}", read_queue_nums=4, write_queue_nums=4
        )
        for number in range(topics)
    }
    group_table = {
        f"group-{number:05d}": SubscriptionGroup(group_name=f"group-{number:05d}")
        for number in range(groups)
    }
    offsets = {
        f"topic-{number % topics:05d}@group-{number:05d}": dict.fromkeys(map(str, range(4)), 0)
        for number in range(groups)
    }
    encode = msgspec.json.encode
    (config / Topics.file_name).write_bytes(encode(Topics(topic_table)))
    (config / SubscriptionGroups.file_name).write_bytes(encode(SubscriptionGroups(group_table)))
    (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))


async def connect(address: str, clients: int, groups: int, topics: int) -> list[RemotingClient]:
    """Connect consumers, each a member of its share of the groups."""
    found: list[RemotingClient] = []
    for number in range(clients):
        members = [
            ConsumerData(
                group_name=f"group-{group:05d}",
                subscription_data_set=[
                    Subscription(topic=f"topic-{group % topics:05d}", sub_string="*")
                ],
            )
            for group in range(number, groups, clients)
        ]
        heartbeat = Heartbeat(client_id=f"10.0.0.{number}@bench", consumer_data_set=members)
        client = RemotingClient()
        body = msgspec.json.encode(heartbeat)
        await client.call(address, request(RequestCode.HEART_BEAT, None, body), 60.0)
        found.append(client)
    return found


async def send(producer: Producer, seconds: float) -> list[float]:
    """Send at a fixed rate; return the sorted latencies in milliseconds."""
    taken: list[float] = []
    begun = time.perf_counter()
    for number in range(int(seconds * RATE)):
        await asyncio.sleep(max(0.0, begun + number / RATE - time.perf_counter()))
        start = time.perf_counter()
        await producer.send(Message(topic=f"topic-{number % 100:05d}", body=b"x" * 1024))
        taken.append(1000 * (time.perf_counter() - start))
    return sorted(taken)


async def visit(client: httpx.AsyncClient, path: str) -> float:
    """Open a page; return the seconds that it took."""
    start = time.perf_counter()
    response = await client.get(path)
    assert response.status_code == 200, (path, response.status_code, response.text[:2000])
    return time.perf_counter() - start


async def visit_until(
    done: asyncio.Event, client: httpx.AsyncClient, pause: float
) -> dict[str, float]:
    """Open pages with pauses (seconds); return the slowest of each."""
    slowest: dict[str, float] = {}
    while not done.is_set():
        for path in PAGES:
            slowest[path] = max(slowest.get(path, 0.0), await visit(client, path))
            if done.is_set():
                break
            await asyncio.sleep(pause)
    return slowest


async def until_it_answers(ask: Callable[[], Awaitable[object]]) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            await ask()
        except (httpx.TransportError, MqlakeError):
            await asyncio.sleep(0.2)
        else:
            return
    raise TimeoutError("a server does not answer")


async def measure(given: argparse.Namespace, address: str, names: str, url: str) -> None:
    """Measure and print."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=300, follow_redirects=True) as visitor,
        Producer(names) as producer,
    ):
        await until_it_answers(lambda: visitor.get("/login"))
        await until_it_answers(lambda: send(producer, 2))
        clients = await connect(address, given.clients, given.groups, given.topics)
        first = await visit(visitor, "/cluster")
        pages = {path: await visit(visitor, path) for path in PAGES}
        alone = await send(producer, given.seconds)
        done = asyncio.Event()
        visiting = asyncio.create_task(visit_until(done, visitor, given.pause))
        beside = await send(producer, given.seconds)
        done.set()
        slowest = await visiting
        for client in clients:
            await client.close()
    for label, value in machine().items():
        print(f"{label}: {value}")
    print(f"first page {first:.2f} s (bar: 1)")
    print("page, first time (s), slowest while messages are sent (s); bar: 2")
    for path, seconds in pages.items():
        print(f"  {path}: {seconds:.2f}, {slowest.get(path, 0.0):.2f}")
    at = int(len(alone) * 0.99)
    ratio = beside[at] / alone[at]
    print(f"p99 of {RATE} sends a second: {alone[at]:.2f} ms without the visitor,")
    print(f"  {beside[at]:.2f} ms with: {ratio:.2f} x (bar: 2)")


def main() -> None:
    """Start the processes, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two pages")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mqlake-console-") as place:
        store = Path(place) / "store"
        fill(store, given.topics, given.groups)
        port, name_port, console_port = free_port(-2, 1), free_port(), free_port()
        names, address = f"127.0.0.1:{name_port}", f"127.0.0.1:{port}"
        program = [sys.executable, "-m", "mqlake"]
        broker = [*program, "broker", "--store", str(store), "--port", str(port)]
        broker += ["--namesrv-port", str(name_port), "--set", "brokerIP1=127.0.0.1"]
        console = [*program, "console", "-n", names, "--store", str(store)]
        console += ["--port", str(console_port)]
        log = Path(place) / "log"
        with log.open("w") as errors:
            processes = [subprocess.Popen(command, stderr=errors) for command in (broker, console)]
            try:
                url = f"http://127.0.0.1:{console_port}"
                asyncio.run(measure(given, address, names, url))
            except BaseException:
                print(log.read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                for process in processes:
                    process.terminate()
                for process in processes:
                    process.wait()


if __name__ == "__main__":
    main()
