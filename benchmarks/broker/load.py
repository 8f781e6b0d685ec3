"""Send to a broker faster than any broker answers: frames made beforehand, many in flight.

`python -m benchmarks.broker.load ADDRESS` prints one JSON object. It checks that every send was
answered with SUCCESS.
"""

from __future__ import annotations

import argparse
import json
import random
import selectors
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field

from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.binary_header import LANGUAGES
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import LANGUAGE, VERSION, Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.send import SendMessageHeaderV2

_CHUNK = 1 << 18
_SHOWN = 300
_PAUSE = 0.002
"""Seconds between sends at a pace."""
SUCCESS = {
    Serialization.JSON: b'{"code":0,',
    Serialization.ROCKETMQ: struct.pack(">hBh", 0, LANGUAGES.index(LANGUAGE), VERSION),
}
"""What answers have only where they say so."""
FRAMES = 50_000
"""Messages that are made beforehand."""
QUEUES = 4


@dataclass
class Load:
    """What is sent.

    Attributes:
        connections: each with its own window of sends without an answer.
        window: of each connection.
        size: bytes of a body.
        seconds: to measure, after `warm_up`.
        topic: its name; with `topics` more than one, the beginning of their names.
        topics: each send goes to one of so many, drawn at random.
        headers: of the frames; Java's clients write JSON unless told otherwise.
        pace: sends a second that are begun at most; 0 for as many as there are answers.
        batch: messages of each send; 1 for sends of single messages.
    """

    address: str
    connections: int = 16
    window: int = 64
    size: int = 128
    seconds: float = 10.0
    warm_up: float = 2.0
    topic: str = "Load"
    topics: int = 1
    headers: Serialization = Serialization.ROCKETMQ
    pace: int = 0
    batch: int = 1

    def names(self) -> list[str]:
        """Return the topics to which it sends."""
        if self.topics == 1:
            return [self.topic]
        return [f"{self.topic}-{number:05}" for number in range(self.topics)]


@dataclass
class _Producer:
    connection: socket.socket
    frames: list[bytes]
    window: int
    success: bytes
    sent: int = 0
    answered: int = 0
    unsent: bytes = b""
    rest: bytes = b""
    last: bytes = b""
    """The beginning of what arrived last."""
    begun: float = 0.0
    took: list[float] = field(default_factory=list[float])

    def fill(self, most: int = FRAMES) -> None:
        """Send as many as the window has room for, and no more than `most`."""
        room = min(most, self.window - (self.sent - self.answered))
        if room > 0 and not self.unsent:
            at = self.sent % len(self.frames)
            chosen = self.frames[at : at + room]
            self.unsent = b"".join(chosen)
            self.sent += len(chosen)
            self.begun = time.perf_counter()
        self.send_rest()

    def send_rest(self) -> None:
        """Send what the connection has not taken yet."""
        if self.unsent:
            with suppress(BlockingIOError):
                self.unsent = self.unsent[self.connection.send(self.unsent) :]

    def take(self) -> None:
        """Count the answers that have come."""
        data = self.connection.recv(_CHUNK)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self.last = data[:_SHOWN]
        data = self.rest + data
        found = data.count(self.success)
        # A whole answer is longer than this, so its beginning is counted once.
        self.rest = data[len(data) - len(self.success) + 1 :]
        self.answered += found
        if found and self.window == 1:
            self.took.append(time.perf_counter() - self.begun)


def run(load: Load) -> dict[str, float]:
    """Send for some seconds; return what was answered in them, and in all.

    With one send in flight on each connection, also within how many microseconds.
    """
    host, _, port = load.address.rpartition(":")
    made = frames(load)
    producers = [
        _Producer(
            socket.create_connection((host, int(port))), made, load.window, SUCCESS[load.headers]
        )
        for _ in range(load.connections)
    ]
    with selectors.DefaultSelector() as selector:
        for producer in producers:
            producer.connection.setblocking(False)
            producer.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(producer.connection, selectors.EVENT_READ, producer)
            producer.fill(load.window if not load.pace else 1)
        _drive(selector, producers, load.pace, load.warm_up)
        first, begin = sum(p.answered for p in producers), time.perf_counter()
        _drive(selector, producers, load.pace, load.seconds)
        answered = sum(p.answered for p in producers) - first
        seconds = time.perf_counter() - begin
        _drain(selector, producers)
    total = sum(p.answered for p in producers)
    for producer in producers:
        producer.connection.close()
    found = {"sends": answered, "seconds": seconds, "rate": answered / seconds, "total": total}
    return found | _shares(sorted(took for producer in producers for took in producer.took))


def _shares(took: list[float]) -> dict[str, float]:
    """Return within how many microseconds shares of the sends were answered, if this is known."""
    if not took:
        return {}
    return {
        f"p{percent:g}": 1e6 * took[min(len(took) - 1, int(len(took) * percent / 100))]
        for percent in (50, 99, 99.9)
    }


def _drive(
    selector: selectors.BaseSelector, producers: list[_Producer], pace: int, seconds: float
) -> None:
    begin, first = time.perf_counter(), sum(producer.sent for producer in producers)
    while (now := time.perf_counter()) < begin + seconds:
        ready = [key.data for key, _ in selector.select(_PAUSE if pace else 1)]
        for producer in ready:
            producer.take()
        if pace:
            # A share of what is due for each: a broker does not get all of it on one connection.
            due = first + int(pace * (now - begin)) - sum(producer.sent for producer in producers)
            for producer in producers:
                producer.fill(-(-due // len(producers)) if due > 0 else 0)
        else:
            for producer in ready:
                producer.fill()


def _drain(selector: selectors.BaseSelector, producers: list[_Producer]) -> None:
    """Wait until everything sent was answered with SUCCESS."""
    until = time.perf_counter() + 5
    while any(p.answered < p.sent for p in producers):
        if time.perf_counter() > until:
            missing = sum(p.sent - p.answered for p in producers)
            last = next(p.last for p in producers if p.answered < p.sent)
            raise RuntimeError(
                f"{missing} sends were not answered with SUCCESS; the last answer begins {last!r}"
            )
        for key, _ in selector.select(0.1):
            key.data.take()
        for producer in producers:
            producer.send_rest()


def frames(load: Load, count: int = FRAMES) -> list[bytes]:
    """Return frames as a Java client makes them, of so many messages, with differing keys and
    queues.
    """
    names, drawn, is_batch = load.names(), random.Random(1), load.batch > 1
    code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
    made: list[bytes] = []
    for number in range(-(-count // load.batch)):
        properties = f"UNIQ_KEY\x017F0000010A2B18B4AAC2{number:012X}\x02WAIT\x01true\x02"
        header = SendMessageHeaderV2(
            producer_group="load",
            topic=drawn.choice(names),
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=drawn.randrange(QUEUES) if load.topics > 1 else number % QUEUES,
            sys_flag=0,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0,
            properties=properties,
            reconsume_times=0,
            unit_mode=False,
            batch=is_batch,
        )
        body = bytes(load.size)
        if is_batch:
            body = encode_batch([(0, body, properties.encode())] * load.batch)
        command = request(code, header, body)
        command.opaque, command.language, command.version = number, "JAVA", 477
        command.serialization = load.headers
        made.append(encode(command))
    return made


def main() -> None:
    """Run one load, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--connections", type=int, default=Load.connections)
    parser.add_argument("--window", type=int, default=Load.window)
    parser.add_argument("--size", type=int, default=Load.size)
    parser.add_argument("--seconds", type=float, default=Load.seconds)
    parser.add_argument("--topics", type=int, default=Load.topics)
    parser.add_argument("--pace", type=int, default=Load.pace, help="sends a second")
    parser.add_argument("--json", action="store_true", help="JSON headers instead of binary ones")
    parser.add_argument("--batch", type=int, default=Load.batch, help="messages of a send")
    arguments = vars(parser.parse_args())
    headers = Serialization.JSON if arguments.pop("json") else Serialization.ROCKETMQ
    print(json.dumps(run(Load(**arguments, headers=headers))))


if __name__ == "__main__":
    main()
