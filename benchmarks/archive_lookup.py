"""Look up a key in an archive of 100 GiB on a server of S3: how long, and how many bytes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.peer.go_build import GoMissingError, build
from tests.peer.rocketmq_cluster import free_ports

from benchmarks.bench import Bench, mqlake, say
from benchmarks.relay import CountingRelay
from benchmarks.results import Bar, Section, Series
from mqlake.formats import archive_manifest, consume_queue, index_file, record
from mqlake.formats.archive_manifest import ArchivedFile, ArchivedSegment, Manifest
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.file_name import segment_name
from mqlake.formats.index_file import IndexEntry, IndexHeader
from mqlake.formats.java_string import index_key_hash

SEGMENT = 1 << 30
SEGMENTS, SEGMENTS_OF_INDEX = 100, 10
QUEUE_FILE = 6_000_000
SLOTS, ENTRIES = 5_000_000, 20_000_000
TOPIC, BUCKET, ARCHIVE = "Orders", "bench", "broker-a"
START = 1_700_000_000_000
WANTED_SECONDS, WANTED_SHARE = 2, 0.01

METHOD = """\
An archive of {segments} segments of 1 GiB, with {indexes} full index files of RocketMQ's default
size (5,000,000 slots, 20,000,000 entries, 420 MB each) and their consume queue, is on the Versity
S3 gateway, which serves the files of a directory. The files are sparse, with real records and
entries at a few positions. Each lookup is `mqlake query s3://… --topic --key` in a process of its
own, for a key of another segment. A relay in front of the gateway counts the bytes that it sends,
including HTTP headers."""

_GATEWAY = Path(__file__).parents[1] / "tests" / "peer" / "versitygw"
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
_KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}


class Message(NamedTuple):
    """A real record of the archive."""

    key: str
    offset: int
    size: int
    time: int


def missing() -> str | None:
    """Return why this cannot be measured here, None if it can."""
    try:
        build(_GATEWAY, _PACKAGE)
    except GoMissingError as reason:
        return str(reason)
    return None


def measure(bench: Bench) -> Section:
    """Write the archive, then look keys up in it."""
    root = bench.directory / "s3"
    say(f"an archive of {SEGMENTS} GiB, sparse")
    messages = write_archive(root / BUCKET / ARCHIVE)
    wanted = messages[:: len(messages) // (bench.repetitions + 1)][1 : bench.repetitions + 1]
    seconds: list[float] = []
    read: list[float] = []
    with _gateway(root) as port, CountingRelay(port) as relay:
        for number, message in enumerate([wanted[0], *wanted]):
            before, begin = relay.sent, time.perf_counter()
            _look_up(f"http://127.0.0.1:{relay.port}", message)
            if number:  # the first one fills caches of this machine
                seconds.append(time.perf_counter() - begin)
                read.append(float(relay.sent - before))
    series = [
        Series("key lookup, whole process", "s", seconds),
        Series("key lookup, bytes from the server", "B", read),
    ]
    share = 100 * max(read) / (SEGMENTS * SEGMENT)
    bars = [
        Bar("key lookup over an archive of 100 GiB on S3", "<", WANTED_SECONDS, max(seconds), "s"),
        Bar("share of the archive that it reads", "<", WANTED_SHARE, share, "%"),
    ]
    method = METHOD.format(segments=SEGMENTS, indexes=SEGMENTS // SEGMENTS_OF_INDEX)
    remark = f"Each lookup read {min(read) / 1e6:.2f} to {max(read) / 1e6:.2f} MB."
    return Section("archive_lookup", "Key lookup in an archive", method, series, bars, [remark])


def _look_up(endpoint: str, message: Message) -> None:
    setting = f"fs.s3a.endpoint={endpoint}"
    question = ("--topic", TOPIC, "--key", message.key, "--json", "--set", setting)
    done = subprocess.run(
        [mqlake(), "query", f"s3://{BUCKET}/{ARCHIVE}", *question],
        check=True,
        capture_output=True,
        env=os.environ | _KEYS | {"AWS_REGION": "us-east-1"},
    )
    (found,) = json.loads(done.stdout)["messages"]
    assert found["physicalOffset"] == message.offset, found


@contextmanager
def _gateway(root: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    beside = root.parent / "metadata"
    beside.mkdir()
    keys = ("--access", _KEYS["AWS_ACCESS_KEY_ID"], "--secret", _KEYS["AWS_SECRET_ACCESS_KEY"])
    command = [build(_GATEWAY, _PACKAGE), *keys, "--port", f"127.0.0.1:{port}", "--quiet"]
    process = subprocess.Popen(
        [*command, "posix", "--sidecar", beside, root],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(port)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def write_archive(to: Path) -> list[Message]:
    """Write a sparse archive; return its messages, ascending."""
    messages: list[Message] = []
    segments = [_write_segment(to, number, messages) for number in range(SEGMENTS)]
    files = [_write_queue(to, messages)]
    for first in range(0, SEGMENTS, SEGMENTS_OF_INDEX):
        low, high = first * SEGMENT, (first + SEGMENTS_OF_INDEX) * SEGMENT
        own = [message for message in messages if low <= message.offset < high]
        files.append(_write_index(to, f"202301010000{first:05d}", own))
    manifest = Manifest(generation=1, written=START, segments=tuple(segments), files=tuple(files))
    (to / archive_manifest.NAME).write_bytes(archive_manifest.encode(manifest))
    return messages


def _write_segment(to: Path, number: int, messages: list[Message]) -> ArchivedSegment:
    """Write a few records at the start and one at the end, with nothing in between."""
    base = number * SEGMENT
    data = b"".join(_append(messages, base) for _ in range(4))
    last = len(_record(messages, 0))
    end = SEGMENT - 64 - last
    tail = _append(messages, base, end) + record.encode_blank_head(64)
    path = f"commitlog/{segment_name(base)}"
    _write(to / path, SEGMENT, {0: data, end: tail})
    return ArchivedSegment(
        path=path,
        object=path,
        size=SEGMENT,
        stored=SEGMENT,
        sha256="0" * 64,
        start=base,
        end=base + SEGMENT,
        records=5,
        damaged=0,
        min_store_timestamp=messages[-5].time,
        max_store_timestamp=messages[-1].time,
        head_crc32=0,
    )


def _append(messages: list[Message], base: int, at: int | None = None) -> bytes:
    """Return the next record, which follows the last one of its segment, or is at a position."""
    last = messages[-1] if messages else None
    follows = last.offset + last.size if last and last.offset >= base else base
    offset = follows if at is None else base + at
    data = _record(messages, offset)
    messages.append(Message(_key(len(messages)), offset, len(data), START + len(messages) * 60_000))
    return data


def _record(messages: list[Message], offset: int) -> bytes:
    number = len(messages)
    return record.encode(
        topic=TOPIC,
        body=b"x" * 1024,
        properties={"KEYS": _key(number), "TAGS": "paid"},
        queue_offset=number,
        physical_offset=offset,
        born_timestamp=START + number * 60_000,
        store_timestamp=START + number * 60_000,
    )


def _key(number: int) -> str:
    return f"order-{number:08d}"


def _write_queue(to: Path, messages: list[Message]) -> ArchivedFile:
    path = f"consumequeue/{TOPIC}/0/{segment_name(0)}"
    entries = (QueueEntry(message.offset, message.size, 0) for message in messages)
    data = b"".join(map(consume_queue.encode, entries))
    _write(to / path, len(data), {0: data})
    return _file(path, QUEUE_FILE, len(data))


def _write_index(to: Path, name: str, messages: list[Message]) -> ArchivedFile:
    """Write a full index file with the messages' entries at both of its ends."""
    first, last = messages[0], messages[-1]
    parts: dict[int, bytes] = {
        0: index_file.encode_header(
            IndexHeader(first.time, last.time, first.offset, last.offset, SLOTS, ENTRIES)
        )
    }
    heads: dict[int, int] = {}
    numbers = [*range(1, len(messages)), ENTRIES - 1]
    for number, message in zip(numbers, messages, strict=True):
        hashed = index_key_hash(index_file.index_key(TOPIC, message.key))
        slot = index_file.slot_at(SLOTS, hashed)
        seconds = index_file.seconds_since(first.time, message.time)
        entry = IndexEntry(hashed, message.offset, seconds, heads.get(slot, 0))
        parts[index_file.entry_at(SLOTS, number)] = index_file.encode_entry(entry)
        heads[slot] = number
    parts |= {slot: number.to_bytes(4, "big") for slot, number in heads.items()}
    path, size = f"index/{name}", index_file.file_size(SLOTS, ENTRIES)
    _write(to / path, size, parts)
    return _file(path, size, size)


def _file(path: str, size: int, stored: int) -> ArchivedFile:
    return ArchivedFile(path=path, object=path, size=size, stored=stored, sha256="0" * 64)


def _write(path: Path, size: int, parts: dict[int, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
        for at, data in parts.items():
            file.seek(at)
            file.write(data)
