"""What metrics, TLS and access control cost: a broker with each beside a plain one, in turns.

`python -m benchmarks.broker.protection` prints a table: the rate, and the broker's processor time
for a request, as ratios to the plain broker's in the same turn (medians and quartiles). Sends, or
with `--pulls` pulls of 32 messages, are made beforehand, many in flight; the broker has one core,
and this program another one, if there are two. Processor time is what other programs on the machine
disturb least.

With `--java`, RocketMQ's broker takes turns with each of them, with the same settings, and the
table has the ratios to it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from tests.peer.rocketmq_cluster import PROVIDERS

from benchmarks.broker import sides
from benchmarks.broker.load import QUEUES, SUCCESS, Load, frames
from benchmarks.broker.sides import MqlakeBroker, Side, cpu_seconds
from mqlake.programs.ports import free_port
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION, PullHeader
from mqlake.protocol.signature import Credentials, signed
from mqlake.remoting.client import RemotingClient

CONNECTIONS, WINDOW, FRAMES = 16, 64, 8192
PULL_WINDOW, A_PULL = 8, 32
"""Pulls in flight of one connection: their answers fit into its buffers. Messages of each."""
_GROUP = "pullers"
WARM_UP = 2
"""First turns, in which kernels are loaded."""
_ROOT = Credentials("root", "root-password")
_USER = Credentials("load", "load-password")
_ACL = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": json.dumps(
        {"username": _ROOT.access_key, "password": _ROOT.secret_key}
    ),
}
_JAVA = "Java, "
"""Before the way in the name of RocketMQ's broker."""
_PATIENCE = 100.0


class Way(NamedTuple):
    """How a broker is protected, and how it is used.

    Attributes:
        settings: of the broker.
        has_tls: whether the connections use TLS. Every broker accepts it, with a certificate of its
            own.
        is_signed: whether a user signs all requests, who has permissions for the topic and the
            group only.
    """

    settings: dict[str, str]
    has_tls: bool = False
    is_signed: bool = False


WAYS = {
    "plain": Way({}),
    "metrics": Way({"metricsExporterType": "PROM"}),
    "TLS": Way({}, has_tls=True),
    "ACL": Way(_ACL, is_signed=True),
    "all three": Way({"metricsExporterType": "PROM", **_ACL}, has_tls=True, is_signed=True),
}


class Turn(NamedTuple):
    """What one broker did in a turn: requests a second, and its microseconds for one."""

    rate: float
    processor: float


def main() -> None:
    """Measure, and print a table for each kind of headers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--json", action="store_true", help="JSON headers instead of binary ones")
    parser.add_argument("--pulls", action="store_true", help="pulls instead of sends")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--java", action="store_true", help="RocketMQ's broker, too")
    given = parser.parse_args()
    headers = Serialization.JSON if given.json else Serialization.ROCKETMQ
    ways = {name: WAYS[name] for name in WAYS if name == "plain" or name in given.ways}
    if given.java:
        ways |= {f"{_JAVA}{name}": way for name, way in ways.items()}
    with tempfile.TemporaryDirectory() as directory, _brokers(Path(directory), ways) as brokers:
        senders: dict[str, _Requests] = {}
        for name, way in ways.items():
            sends = frames(Load(brokers[name].broker, size=given.size, headers=headers), FRAMES)
            senders[name] = _Requests(brokers[name], way, sends, WINDOW)
            if given.pulls:
                senders[name].make_each_once()
                senders[name] = _Requests(brokers[name], way, _pulls(headers), PULL_WINDOW)
        os.sched_setaffinity(0, [(os.cpu_count() or 1) - 1])
        turns: list[dict[str, Turn]] = []
        for number in range(WARM_UP + given.turns):
            names = list(ways) if number % 2 else list(ways)[::-1]
            turns.append({name: senders[name].turn(given.seconds) for name in names})
    _show(turns[WARM_UP:], "pull" if given.pulls else "send")


@contextmanager
def _brokers(directory: Path, ways: dict[str, Way]) -> Iterator[dict[str, Side]]:
    brokers: dict[str, Side] = {}
    try:
        for name, way in ways.items():
            settings = dict(way.settings)
            if "metricsExporterType" in settings:
                settings["metricsPromExporterPort"] = str(free_port())
            brokers[name] = broker = _start(
                name, directory / name.replace(",", "").replace(" ", "-"), settings
            )
            sides.pin(broker, 0)
            if way.is_signed:
                asyncio.run(_create_user(broker.broker))
            _scrape(settings)
        yield brokers
    finally:
        for broker in brokers.values():
            _stop(broker)


def _start(name: str, directory: Path, settings: dict[str, str]) -> Side:
    if not name.startswith(_JAVA):
        return MqlakeBroker(directory, **settings)
    return sides.java(
        directory, **settings, **(PROVIDERS if _ACL.keys() <= settings.keys() else {})
    )


def _stop(broker: Side) -> None:
    """Stop a broker; one that takes too long must not keep the others running."""
    try:
        broker.stop()
    except subprocess.TimeoutExpired:
        print(f"the broker at {broker.broker} does not stop", file=sys.stderr)
        os.kill(broker.process_id, signal.SIGKILL)


def _scrape(settings: dict[str, str]) -> None:
    """Read the metrics once, as Prometheus does."""
    if (port := settings.get("metricsPromExporterPort")) is not None:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_PATIENCE) as answer:
            answer.read()


async def _create_user(address: str) -> None:
    """Create the user, who may only send to the topic, and pull from it for the group."""
    client = RemotingClient(credentials=_ROOT)

    async def ask(code: int, fields: dict[str, str], body: object) -> None:
        await client.call(address, request(code, fields, json.dumps(body).encode()), _PATIENCE)

    name = _USER.access_key
    allowed = {f"Topic:{Load.topic}": ["Pub", "Sub"], f"Group:{_GROUP}": ["Sub"]}
    entries = [
        {"resource": resource, "actions": actions, "decision": "Allow"}
        for resource, actions in allowed.items()
    ]
    try:
        user = {"username": name, "password": _USER.secret_key}
        await ask(RequestCode.AUTH_CREATE_USER, {"username": name}, user)
        subject = f"User:{name}"
        policies = [{"policyType": "Custom", "entries": entries}]
        acl = {"subject": subject, "policies": policies}
        await ask(RequestCode.AUTH_CREATE_ACL, {"subject": subject}, acl)
        topic = {
            "topic": Load.topic, "defaultTopic": "TBW102", "readQueueNums": "4",
            "writeQueueNums": "4", "perm": "6", "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0", "order": "false",
        }  # fmt: skip
        await client.call(address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, topic), _PATIENCE)
    finally:
        await client.close()


def _pulls(headers: Serialization) -> list[bytes]:
    """Return pulls of all messages, by turns of the queues, as a group of consumers commits."""
    made: list[bytes] = []
    for offset in range(0, FRAMES // QUEUES, A_PULL):
        for queue_id in range(QUEUES):
            header = PullHeader(
                consumer_group=_GROUP,
                topic=Load.topic,
                queue_id=queue_id,
                queue_offset=offset,
                max_msg_nums=A_PULL,
                sys_flag=COMMITS_OFFSET | HAS_SUBSCRIPTION,
                commit_offset=offset,
                suspend_timeout_millis=15_000,
                subscription="*",
                sub_version=1_700_000_000_000,
            )
            command = request(RequestCode.PULL_MESSAGE, header)
            command.opaque, command.language, command.version = len(made), "JAVA", 477
            command.serialization = headers
            made.append(encode(command))
    return made


class _Requests:
    """Connections to one broker, each with a window of requests in flight."""

    def __init__(self, broker: Side, way: Way, made: Sequence[bytes], window: int) -> None:
        self._broker, self._window = broker, window
        self._success = SUCCESS[Serialization(made[0][4])]
        if way.is_signed:
            made = [_signed(frame) for frame in made]
        windows = range(0, len(made), window)
        self._windows = [b"".join(made[at : at + window]) for at in windows]
        self._connections = [self._connect(way) for _ in range(CONNECTIONS)]
        self._number = 0

    def _connect(self, way: Way) -> socket.socket:
        host, _, port = self._broker.broker.rpartition(":")
        found = socket.create_connection((host, int(port)), _PATIENCE)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not way.has_tls:
            return found
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(found)

    def make_each_once(self) -> None:
        """Make each request once, over one connection."""
        for window in self._windows:
            self._connections[0].sendall(window)
            self._read(self._connections[0])

    def turn(self, seconds: float) -> Turn:
        """Make requests for some seconds; each must be answered with SUCCESS."""
        sent, begin = 0, time.perf_counter()
        before = cpu_seconds(self._broker.process_id)
        while time.perf_counter() < begin + seconds:
            for connection in self._connections:
                connection.sendall(self._windows[self._number % len(self._windows)])
                self._number += 1
            for connection in self._connections:
                self._read(connection)
            sent += CONNECTIONS * self._window
        took = cpu_seconds(self._broker.process_id) - before
        return Turn(sent / (time.perf_counter() - begin), took / sent * 1e6)

    def _read(self, connection: socket.socket) -> None:
        """Read the answers to one window."""
        data, at, found = bytearray(), 0, 0
        while found < self._window:
            received = connection.recv(1 << 18)
            if not received:
                raise ConnectionError("the broker closed the connection")
            data += received
            while len(data) - at >= 4:
                following = at + 4 + int.from_bytes(data[at : at + 4])
                if following > len(data):
                    break
                if not data.startswith(self._success, at + 8):
                    raise RuntimeError(f"{decode(bytes(data[at:following]))} is no success")
                at, found = following, found + 1


def _signed(frame: bytes) -> bytes:
    command: Command = signed(decode(frame), _USER)
    return encode(command)


def _show(turns: Sequence[dict[str, Turn]], what: str) -> None:
    has_java = f"{_JAVA}plain" in turns[0]
    others = "rate to Java's | processor time to Java's | " if has_java else ""
    print(f"| broker | {what}s a second | rate | processor time for a {what} | {others}")
    print("| --- | --- | --- | --- |" + " --- | --- |" * has_java)
    for name in (each for each in WAYS if each in turns[0]):
        rate = statistics.median(turn[name].rate for turn in turns)
        cells = [name, f"{rate:,.0f}", *_ratios(turns, name, "plain")]
        if has_java:
            cells += _ratios(turns, name, f"{_JAVA}{name}")
        print(f"| {' | '.join(cells)} |", flush=True)


def _ratios(turns: Sequence[dict[str, Turn]], name: str, other: str) -> tuple[str, str]:
    """Return one broker's rate and processor time as ratios to another's in the same turn."""
    return (
        _ratio([turn[name].rate / turn[other].rate for turn in turns]),
        _ratio([turn[name].processor / turn[other].processor for turn in turns]),
    )


def _ratio(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
