"""python -m benchmarks.grpc.libraries: the CPU time of a SendMessage call in several servers.

64 calls are in flight on one connection. The client is grpcio's, or one that sends prepared frames
as fast as the server answers ("saturating"). All servers take their turns several times. What
counts is the CPU time of the server's process, user and system, for each call.

grpclib, h2 and h2corn are measured if they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from benchmarks.grpc.servers import KINDS, PATH
from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.headers import literal
from mqlake.grpc.messages import (
    Message,
    Resource,
    SendMessageRequest,
    SendMessageResponse,
    SystemProperties,
)

IN_FLIGHT = 64
_TICK = os.sysconf("SC_CLK_TCK")
_REQUEST = SendMessageRequest(
    messages=[
        Message(
            topic=Resource(name="orders"),
            system_properties=SystemProperties(tag="t", message_id="01" * 17),
            body=bytes(128),
        )
    ]
)
_METADATA = (
    ("x-mq-client-id", "host@4711@0@abcdefgh"),
    ("x-mq-language", "PYTHON"),
    ("x-mq-client-version", "5.1.2"),
    ("x-mq-protocol", "GRPC_V2"),
    ("x-mq-namespace", ""),
)


def cpu_of(process: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


@contextmanager
def server_of(kind: str, loop: str) -> Iterator[tuple[int, int]]:
    """Start a server; return its process and its port."""
    command = [sys.executable, "-m", "benchmarks.grpc.servers", kind, loop]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        _wait_for(port)
        yield server.pid, port
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int) -> None:
    """Return once somebody listens on a port."""
    while True:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)


def call_by_grpcio(port: int, seconds: float) -> int:
    """Call as RocketMQ's Python client does; return the number of calls."""
    return asyncio.run(_call_by_grpcio(port, seconds))


async def _call_by_grpcio(port: int, seconds: float) -> int:
    import grpc.aio

    count, until = 0, time.monotonic() + seconds
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = channel.unary_unary(
            PATH,
            request_serializer=SendMessageRequest.SerializeToString,
            response_deserializer=SendMessageResponse.FromString,
        )

        async def calls() -> None:
            nonlocal count
            while time.monotonic() < until:
                metadata = (*_METADATA, ("x-mq-request-id", str(uuid.uuid4())))
                await stub(_REQUEST, metadata=metadata, timeout=30)
                count += 1

        await asyncio.gather(*(calls() for _ in range(IN_FLIGHT)))
    return count


def call_at_once(port: int, seconds: float) -> int:
    """Call by prepared frames; return the number of calls."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", PATH),
        (":authority", "127.0.0.1"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("grpc-timeout", "30S"),
        *_METADATA,
    ]
    first = b"".join(b"\x40" + literal(*field)[1:] for field in fields)
    # They are in the table now; the first one was added first.
    block = bytes(0x80 | 61 + len(fields) - at for at in range(len(fields)))
    body = _REQUEST.SerializeToString()
    data = b"\0" + len(body).to_bytes(4) + body
    numbers = iter(range(1, 1 << 31, 2))

    def call(headers: bytes) -> bytes:
        number = next(numbers)
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, number, headers)
        return head + frames.frame(frames.DATA, frames.END_STREAM, number, data)

    count, until = 0, time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(
            frames.PREFACE + frames.settings({}) + frames.window_update(0, 1 << 30) + call(first)
        )
        client.sendall(b"".join(call(block) for _ in range(IN_FLIGHT - 1)))
        rest = b""
        while time.monotonic() < until:
            rest += client.recv(1 << 18)
            ended, at = 0, 0
            while len(rest) - at >= frames.HEAD.size:
                start, flags, _ = frames.HEAD.unpack_from(rest, at)
                if at + 9 + (start >> 8) > len(rest):
                    break
                at += 9 + (start >> 8)
                ended += start & 0xFF == frames.HEADERS and flags & frames.END_STREAM
            rest = rest[at:]
            count += ended
            if ended:
                client.sendall(b"".join(call(block) for _ in range(ended)))
    return count


CLIENTS = {"grpcio": call_by_grpcio, "saturating": call_at_once}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grpc.libraries")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one turn")
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    kinds = [
        kind for kind in arguments.kinds if find_spec(kind.partition(",")[0]) or kind == "grpcio"
    ]
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(arguments.turns):
        for kind in kinds if turn % 2 else reversed(kinds):
            for name, client in CLIENTS.items():
                with server_of(kind, arguments.loop) as (process, port):
                    client(port, 0.5)
                    before = cpu_of(process)
                    count = client(port, arguments.seconds)
                    cost = (cpu_of(process) - before) / count * 1e6
                    found.setdefault((kind, name), []).append(cost)
                    print(f"{kind}, {name}: {count:,} calls, {cost:.1f} µs", file=sys.stderr)
    result = {f"{kind}, {name}": statistics.median(costs) for (kind, name), costs in found.items()}
    if arguments.json:
        print(json.dumps(result))
        return
    print("| server | µs a call, grpcio's client | µs a call, saturating client |")
    print("| --- | --: | --: |")
    for kind in kinds:
        costs = [result[f"{kind}, {name}"] for name in CLIENTS]
        print(f"| {kind} | {costs[0]:.0f} | {costs[1]:.0f} |")


if __name__ == "__main__":
    main()
