"""Pull a backlog as Java's push consumer does, with next to no work between two pulls."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import RESPONSE

GROUP = "backlog"
A_PULL = 32
_CHUNK = 1 << 18
_LENGTHS = struct.Struct(">II")
_SUBSCRIBED = 1_700_000_000_000
_COMMITS_AND_WAITS = 3


def run(address: str, topic: str, queues: int, count: int, group: str = GROUP) -> float:
    """Pull so many times from the first offsets on; return the seconds that it took.

    A pull of each queue is in flight. Headers are JSON, with the fields that Java's client sends.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(heartbeat(topic, group))
        answers = Answers(connection)
        answers.next()
        begin, offsets = time.perf_counter(), [0] * queues
        for queue in range(queues):
            connection.sendall(pull(topic, group, queue, 0))
        for _ in range(count):
            queue = answers.next() % queues
            offsets[queue] += A_PULL
            connection.sendall(pull(topic, group, queue, offsets[queue]))
        for _ in range(queues):
            answers.next()
        return time.perf_counter() - begin


class Answers:
    """The answers on a connection, each of which must be a success."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._data = connection, b""

    def next(self) -> int:
        """Return the opaque of the next answer."""
        while not (header := self._next_header())["flag"] & RESPONSE:
            pass  # the broker tells that the group has another member
        if header["code"]:
            raise RuntimeError(f"a pull was answered with {header}")
        return header["opaque"]

    def _next_header(self) -> dict[str, Any]:
        while len(self._data) < _LENGTHS.size or len(self._data) < 4 + self._lengths()[0]:
            data = self._connection.recv(_CHUNK)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._data += data
        length, header_length = self._lengths()
        header = json.loads(self._data[_LENGTHS.size : _LENGTHS.size + header_length])
        self._data = self._data[4 + length :]
        return header

    def _lengths(self) -> tuple[int, int]:
        return _LENGTHS.unpack_from(self._data)


def heartbeat(topic: str, group: str) -> bytes:
    """Return the request with which a member of a group subscribes to a topic."""
    subscription = {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "TAG",
        "subString": "*",
        "subVersion": _SUBSCRIBED,
        "tagsSet": [],
        "topic": topic,
    }
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    body = {"clientID": "backlog", "consumerDataSet": [consumer], "producerDataSet": []}
    return _frame(RequestCode.HEART_BEAT, 0, {}, json.dumps(body).encode())


def pull(topic: str, group: str, queue: int, offset: int) -> bytes:
    """Return a pull that waits where there is no message; its opaque is the queue's number."""
    fields = {
        "queueId": str(queue),
        "maxMsgBytes": "262144",
        "maxMsgNums": str(A_PULL),
        "sysFlag": str(_COMMITS_AND_WAITS),
        "suspendTimeoutMillis": "15000",
        "commitOffset": str(offset),
        "bname": "broker-a",
        "topic": topic,
        "queueOffset": str(offset),
        "expressionType": "TAG",
        "subVersion": str(_SUBSCRIBED),
        "consumerGroup": group,
    }
    return _frame(RequestCode.PULL_MESSAGE, queue, fields)


def _frame(code: int, opaque: int, fields: dict[str, str], body: bytes = b"") -> bytes:
    """Return a request with a JSON header."""
    header = {
        "code": int(code),
        "extFields": fields,
        "flag": 0,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 513,
    }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(4 + len(encoded) + len(body), len(encoded)) + encoded + body
