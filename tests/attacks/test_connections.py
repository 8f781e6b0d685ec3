"""Clients that keep the event loop busy, or take all connections that there are."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.frames import encode
from mqlake.protocol.json_header import MAX_LENIENT
from tests.attacks.broker_process import attacked
from tests.attacks.raw import answers, connections, push
from tests.attacks.sending import send
from tests.attacks.size import part
from tests.broker.pull.pulls import pull_header
from tests.protocol.messages import frame


def tiny(number: int) -> bytes:
    """Return requests as short as can be, which the broker has to answer all the same."""
    asked = request(RequestCode.GET_ALL_TOPIC_CONFIG + 20_000)
    asked.serialization = Serialization.ROCKETMQ
    return encode(asked) * number


def test_floods_of_tiny_requests(tmp_path: Path) -> None:
    with (
        attacked(tmp_path, "Flood the broker with tiny requests") as attack,
        connections(attack.port, 20, receive=1 << 20) as found,
    ):
        for one in found:
            one.setblocking(False)
        data, until = tiny(5000), time.monotonic() + 3
        while time.monotonic() < until:
            for one in found:
                for transfer in (lambda one=one: one.send(data), lambda one=one: one.recv(1 << 20)):
                    try:
                        transfer()
                    except BlockingIOError:
                        continue
    attack.toll.check()


EACH = part(2000)
"""Pulls on each connection."""


def test_pulls_that_wait_in_line(tmp_path: Path) -> None:
    with attacked(tmp_path, f"Pipeline {10 * EACH:,} pulls on 10 connections") as attack:
        for number in range(20):
            send(attack, "Deep", b"%d" % number)
        pulls = encode(request(RequestCode.PULL_MESSAGE, pull_header(topic="Deep"))) * EACH
        with connections(attack.port, 10) as found:
            for one in found:
                assert push(one, pulls)
            for one in found:
                assert len(answers(one, EACH)) >= EACH
    attack.toll.check()


HEADERS = {
    "1,800 fields, in JSON that only fastjson accepts": b"{code:34,extFields:{"
    + b",".join(b"a%d:1" % n for n in range(1800))
    + b"}}",
    "thousands of nested arrays, in JSON that only fastjson accepts": b"{code:34,x:"
    + b"[" * (MAX_LENIENT - 20),
    "20,000 fields": b'{"code":34,"extFields":{'
    + b",".join(b'"a%d":"1"' % n for n in range(20_000))
    + b"}}",
    "a number of 200,001 digits": b'{"code":3' + b"4" * 200_000 + b"}",
    "40,000 nested objects": b'{"code":34,"extFields":' + b'{"a":' * 40_000,
}
"""What makes each header take long, and the header."""


@pytest.mark.parametrize("content", HEADERS)
def test_headers_that_take_long(tmp_path: Path, content: str) -> None:
    with (
        attacked(tmp_path, f"Send headers with {content}") as attack,
        connections(attack.port, 10) as found,
    ):
        for one in found:
            push(one, frame(HEADERS[content]) * 3)
        attack.probe.settle()
    attack.toll.check()


@pytest.mark.parametrize("size", [15_000, 400_000])
def test_bodies_that_are_no_strict_json(tmp_path: Path, size: int) -> None:
    body = b"{clientID:'x',producerDataSet:[],a:[" + b"1," * (size // 2) + b"1]}"
    with (
        attacked(
            tmp_path, f"Send heartbeats of {size // 1000} kB in JSON that only fastjson accepts"
        ) as attack,
        connections(attack.port, 5) as found,
    ):
        for one in found:
            assert push(one, encode(request(RequestCode.HEART_BEAT, None, body)) * 3)
        codes = {answer.code for one in found for answer in answers(one, 3)}
        assert codes == {ResponseCode.SUCCESS if size < MAX_LENIENT else ResponseCode.SYSTEM_ERROR}
    attack.toll.check()


def test_connections_come_and_go(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with attacked(tmp_path, "Open and close 1,500 connections, twice") as attack:
            for _ in range(2):
                with connections(attack.port, 1500):
                    pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    attack.toll.check()
