"""What each way through the code costs, in processor time: `python -m benchmarks.ways NAME`.

For each line on stdin, it goes that way once and prints the µs of processor time for a message (of
the broker's process alone, where there is one). `benchmarks.before_after` compares two trees so.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from benchmarks.broker import load, pulls
from benchmarks.broker.sides import MqlakeBroker, cpu_seconds
from benchmarks.memory_state import touch_memory
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.headers.pull import PullHeader
from mqlake.remoting.client import RemotingClient
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore

TOPIC = "topic-0"
A_CALL = 32
SETTINGS: dict[str, object] = {"mappedFileSizeCommitLog": 256 << 20}
SECONDS = 1.5
"""Of load on a broker, each time."""
PULLS = 1000
WRITTEN = 256 << 20
"""Bytes of files that a measurement writes, at most."""
_WITH_SUBSCRIPTION = 4
_UNTIL_COMPILED = 6.0
"""Seconds of load before the first measurement."""

Times = Generator[float]


@contextmanager
def _store(directory: Path) -> Iterator[BlockingMessageStore]:
    store = BlockingMessageStore.open(directory, SETTINGS)
    try:
        yield store
    finally:
        store.close()


def _messages(count: int, size: int, first: int = 0) -> list[Message]:
    return [
        Message(TOPIC, b"x" * size, tags="TagA", keys=f"key-{number}", queue_id=number % 8)
        for number in range(first, first + count)
    ]


def _timed(work: Callable[[], object], messages: int) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / messages * 1e6


def _fill(directory: Path, size: int, messages: int) -> None:
    with _store(directory) as store:
        for first in range(0, messages, 1000):
            store.put_many(_messages(1000, size, first))


def _put_each(directory: Path, messages: int, size: int) -> Times:
    with _store(directory) as store:
        while True:
            made = _messages(messages, size)
            yield _timed(lambda made=made: [store.put(message) for message in made], len(made))


def put_one(directory: Path) -> Times:
    """Put messages of 128 bytes, one per call."""
    return _put_each(directory, 40_000, 128)


def put_one_kibibyte(directory: Path) -> Times:
    """Put messages of 1 KiB, one per call."""
    return _put_each(directory, 25_000, 1024)


def put_many(directory: Path) -> Times:
    """Put messages of 1 KiB, 64 per call."""
    with _store(directory) as store:
        while True:
            calls = [_messages(64, 1024, call * 64) for call in range(400)]
            yield _timed(lambda calls=calls: [store.put_many(call) for call in calls], 400 * 64)


def get(directory: Path) -> Times:
    """Get messages of 1 KiB, 32 per call, decoded."""
    _fill(directory, 1024, 96_000)
    with _store(directory) as store:
        reads = store.core.reads

        def scan() -> None:
            for queue_id in range(8):
                offset, end = 0, reads.queue(TOPIC, queue_id).max_offset
                while offset < end:
                    found = reads.get(TOPIC, queue_id, offset, A_CALL)
                    offset += len(found.records)

        while True:
            yield _timed(scan, 96_000)


def recover(directory: Path) -> Times:
    """Open a store whose process was killed: small messages."""
    _fill(directory, 200, 600_000)
    while True:
        (directory / "abort").touch()
        (directory / "checkpoint").unlink()
        begin = time.process_time()
        store = BlockingMessageStore.open(directory, SETTINGS)
        taken = time.process_time() - begin
        store.close()
        yield taken / 600_000 * 1e6


def verify_store(directory: Path) -> Times:
    """Verify a store of messages of 1 KiB in this process."""
    store, engine = directory / "store", LocalEngine()
    _fill(store, 1024, 200_000)
    while True:
        yield _timed(lambda: verify(store, engine=engine), 200_000)


def rebuild_store(directory: Path) -> Times:
    """Rebuild a store of messages of 1 KiB in this process."""
    store, engine = directory / "store", LocalEngine()
    _fill(store, 1024, 200_000)
    new = directory / "new"
    while True:
        yield _timed(lambda: rebuild(store, out=new, engine=engine), 200_000)
        shutil.rmtree(new)


def _sends(directory: Path, size: int, headers: Serialization) -> Times:
    broker = MqlakeBroker(directory / "broker")
    try:
        for number in count():
            asked = load.Load(broker.broker, size=size, seconds=SECONDS, headers=headers)
            asked.topic, asked.warm_up = f"Load{number}", 0.5 if number else _UNTIL_COMPILED
            begin = cpu_seconds(broker.process_id)
            sent = load.run(asked)["total"]
            yield (cpu_seconds(broker.process_id) - begin) / sent * 1e6
    finally:
        broker.stop()


def send(directory: Path) -> Times:
    """Send messages of 128 bytes with binary headers, many in flight."""
    return _sends(directory, 128, Serialization.ROCKETMQ)


def send_kibibyte(directory: Path) -> Times:
    """Send messages of 1 KiB with binary headers, many in flight."""
    return _sends(directory, 1024, Serialization.ROCKETMQ)


def send_json(directory: Path) -> Times:
    """Send messages of 128 bytes with JSON headers, many in flight."""
    return _sends(directory, 128, Serialization.JSON)


def send_kibibyte_json(directory: Path) -> Times:
    """Send messages of 1 KiB with JSON headers, many in flight."""
    return _sends(directory, 1024, Serialization.JSON)


def pull(directory: Path) -> Times:
    """Pull messages of 1 KiB, 32 a request, over one connection."""
    broker = MqlakeBroker(directory / "broker")
    try:
        asked = load.Load(broker.broker, size=1024, seconds=2.0, topic="Pulled")
        load.run(asked)
        while True:
            begin = cpu_seconds(broker.process_id)
            asyncio.run(_pull(broker.broker))
            yield (cpu_seconds(broker.process_id) - begin) / (PULLS * A_CALL) * 1e6
    finally:
        broker.stop()


async def _pull(address: str) -> None:
    client = RemotingClient()
    for number in range(PULLS):
        header = PullHeader(
            consumer_group="group",
            topic="Pulled",
            queue_id=number % load.QUEUES,
            queue_offset=number // load.QUEUES * A_CALL,
            max_msg_nums=A_CALL,
            sys_flag=_WITH_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        answer = await client.call(address, request(RequestCode.PULL_MESSAGE, header))
        assert answer.code == 0, answer.remark
    await client.close()


def pull_backlog(directory: Path) -> Times:
    """Pull a backlog of 128-byte messages as Java's consumer does, one pull a queue."""
    broker = MqlakeBroker(directory / "broker")
    try:
        asked, sent = load.Load(broker.broker, seconds=2.0, topic="Pulled"), 0.0
        while sent < 5 * PULLS * A_CALL:
            sent += load.run(asked)["total"]
        pulls.run(broker.broker, "Pulled", load.QUEUES, PULLS)
        while True:
            begin = cpu_seconds(broker.process_id)
            pulls.run(broker.broker, "Pulled", load.QUEUES, 4 * PULLS)
            yield (cpu_seconds(broker.process_id) - begin) / (4 * PULLS * A_CALL) * 1e6
    finally:
        broker.stop()


WAYS = {
    way.__name__: way
    for way in (
        put_one,
        put_one_kibibyte,
        put_many,
        get,
        recover,
        rebuild_store,
        verify_store,
        send,
        send_kibibyte,
        send_json,
        send_kibibyte_json,
        pull,
        pull_backlog,
    )
}


def main() -> None:
    """Go one way, in a directory that is removed afterwards, until stdin ends."""
    with tempfile.TemporaryDirectory(prefix="mqlake-ways-") as directory:
        times = WAYS[sys.argv[1]](Path(directory))
        for _ in sys.stdin:
            touch_memory(WRITTEN)
            print(next(times), flush=True)
        times.close()


if __name__ == "__main__":
    main()
