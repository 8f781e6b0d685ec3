"""Changes to answers, and requests that nobody expects from a broker."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from mqlake.formats import record
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from tests.hostile.mutate import NAMES, NUMBERS, change

_TEXTS: Sequence[object] = (
    "", " ", "-1", "0", "1", "x", "NaN", "1e99", "true", "null", "\0", "a" * 70_000, "٣", "+5",
    "-9223372036854775808", "9223372036854775807", "9223372036854775808", "4294967296", "0x10",
    None, True, -1, 1.5, [], {}, [[]], {"a": {}}, 10**30,
)  # fmt: skip
_HUGE_ROUTE = json.dumps(
    {
        "queueDatas": [
            {
                "brokerName": "broker-a",
                "readQueueNums": 2**31 - 1,
                "writeQueueNums": 2**31 - 1,
                "perm": 6,
            }
        ],
        "brokerDatas": [{"brokerName": "broker-a", "brokerAddrs": {"0": "nowhere"}}],
    }
).encode()
_BODIES: Sequence[bytes] = (
    b"", b"{", b"[]", b"{}", b"null", b"0", b'""', b"\0" * 100, b"\xff" * 100, b"[" * 5000,
    b'{"a":' * 5000, b'{"brokerDatas":[{}],"queueDatas":[{}]}', b'{"consumerIdList":[1,null]}',
    b'{"consumerIdList":["", "\\ud800"]}', b'{"lockOKMQSet":[{"queueId":"x"}]}',
    _HUGE_ROUTE,
    b'{"queueDatas":[],"brokerDatas":[],"orderTopicConf":"broker-a:2000000000;b:x"}',
    b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"t"}:-5}}',
)  # fmt: skip
_UNASKED = (
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.HEART_BEAT,
)
_CODES = [int(code) for code in ResponseCode]


class Mutations:
    """Mutates answers; the same seed mutates the same answers alike."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._ways: Sequence[Callable[[Command], bytes]] = (
            self._header,
            self._header,
            self._body,
            self._body,
            self._body,
            self._code,
            self._code,
            self._flag,
            self._frame,
            self._other_body,
            self._twice,
            self._nothing,
        )

    def mutate(self, answer: Command) -> bytes:
        """Return the bytes that a client receives instead of an answer."""
        data = self._dice.choice(self._ways)(answer)
        return data + self.unasked() if self._dice.random() < 0.05 else data

    def unasked(self) -> bytes:
        """Return requests that a broker might send, wrong in some way."""
        return b"".join(self._request() for _ in range(self._dice.choice((1, 1, 3, 100))))

    def _request(self) -> bytes:
        dice = self._dice
        fields = {
            "consumerGroup": dice.choice(("group", "other", "")),
            "group": dice.choice(("group", "other")),
            "topic": "t",
            "tranStateTableOffset": "5",
            "commitLogOffset": "7",
            "bname": "broker-a",
            "properties": "CORRELATION_ID\x01x\x02",
        }
        half = record.encode(topic="t", body=b"half", properties={"PGROUP": "producers"})
        body = dice.choice((half, half, *_BODIES))
        command = request(dice.choice(_UNASKED), fields, body)
        command.flag = dice.choice((0, 2))
        return self._header(command) if dice.random() < 0.5 else encode(command)

    def _header(self, answer: Command) -> bytes:
        """Change, add or remove a field of the header."""
        dice, header = self._dice, _json(answer)
        fields = header.setdefault("extFields", {})
        where = dice.choice((fields, fields, fields, header))
        name = dice.choice(sorted(where) or ["x"])
        way = dice.randrange(4)
        if way == 0:
            where.pop(name, None)
        elif way == 1:
            where[name] = str(dice.choice(NUMBERS) * dice.choice((1, -1)))
        elif way == 2:
            where[name] = dice.choice(_TEXTS)
        else:
            where.update((f"{name}{number}", "x") for number in range(dice.choice((1, 2000))))
        return _frame(json.dumps(header).encode("utf-8", "surrogatepass"), answer.body)

    def _body(self, answer: Command) -> bytes:
        data = bytearray(answer.body)
        for _ in range(self._dice.choice((1, 1, 2, 10))):
            change(self._dice, data)
        answer.body = bytes(data)
        return encode(answer)

    def _other_body(self, answer: Command) -> bytes:
        name = self._dice.choice(NAMES)
        answer.body = self._dice.choice((*_BODIES, name, json.dumps([repr(name)]).encode()))
        return encode(answer)

    def _code(self, answer: Command) -> bytes:
        answer.code = self._dice.choice(
            (self._dice.choice(_CODES), self._dice.randrange(-(1 << 31), 1 << 31))
        )
        answer.remark = self._dice.choice((None, "", "no", "\n" * 100, "x" * 50_000))
        return encode(answer)

    def _flag(self, answer: Command) -> bytes:
        if self._dice.random() < 0.5:
            answer.opaque += self._dice.choice((1, -1, 1 << 20))
        else:
            answer.flag = self._dice.choice((0, 2, 3, -1, 1 << 30))
        return encode(answer)

    def _frame(self, answer: Command) -> bytes:
        data = bytearray(encode(answer))
        if self._dice.random() < 0.5:
            at = self._dice.randrange(8)
            data[at] = self._dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            change(self._dice, data)
        return bytes(data)

    def _twice(self, answer: Command) -> bytes:
        return encode(answer) * 2

    def _nothing(self, _answer: Command) -> bytes:
        return b""


def _json(command: Command) -> dict[str, dict[str, object]]:
    data = encode(command)
    size = int.from_bytes(data[5:8])
    return json.loads(data[8 : 8 + size])


def _frame(header: bytes, body: bytes) -> bytes:
    size = 4 + len(header) + len(body)
    return b"".join((size.to_bytes(4), len(header).to_bytes(4), header, body))
