"""Clients that have the broker hold as much as they can for them."""

from __future__ import annotations

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from tests.attacks.broker_process import attacked
from tests.attacks.raw import answers, connections, push
from tests.attacks.sending import send, waiting
from tests.broker.pull.pulls import pulled
from tests.broker.running import PATIENCE

FRAME = 16 << 20


def begun(size: int, sent: int) -> bytes:
    """Return the first bytes of a frame."""
    return struct.pack(">II", size - 4, 100) + bytes(sent - 8)


def parked(topic: str, opaques: count[int], number: int, **fields: object) -> bytes:
    """Return pulls of a topic's queue 0 that wait for its second message."""
    return b"".join(
        encode(_numbered(request(RequestCode.PULL_MESSAGE, waiting(topic, fields)), opaques))
        for _ in range(number)
    )


def _numbered(asked: Command, opaques: count[int]) -> Command:
    asked.opaque = next(opaques)
    return asked


def test_frames_begun_and_never_ended(tmp_path: Path) -> None:
    with (
        attacked(tmp_path, "Send incomplete frames of 16 MiB on 40 connections") as attack,
        connections(attack.port, 40) as found,
    ):
        data = begun(FRAME, FRAME - 1)
        with ThreadPoolExecutor(8) as threads:
            sent = list(threads.map(lambda one: push(one, data), found))
        assert any(sent)
        for _ in range(8):
            send(attack, "Large", bytes(4_000_000))
    attack.toll.check()


def test_small_frames_begun_on_many_connections(tmp_path: Path) -> None:
    with (
        attacked(tmp_path, "Send incomplete frames on 1,000 connections") as attack,
        connections(attack.port, 1000) as found,
    ):
        data = begun(FRAME, 256 << 10)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda one: push(one, data), found))
        for _ in range(8):
            send(attack, "Large", bytes(4_000_000))
    attack.toll.check()


def test_parked_pulls_of_clients_that_read_nothing(tmp_path: Path) -> None:
    with attacked(tmp_path, "Wake 10,000 pulls of clients that read no responses") as attack:
        send(attack, "Wide", b"first")
        before = attack.resident()
        with connections(attack.port, 40, receive=4096) as found:
            opaques = count(1)
            for one in found:
                assert push(one, parked("Wide", opaques, 250))
            attack.probe.settle()
            send(attack, "Wide", bytes(250_000))
            time.sleep(1)
            send(attack, "Wide", b"third")
            (answer, *_) = answers(found[0], 1)
            assert pulled(answer).code == ResponseCode.SUCCESS
        until = time.monotonic() + PATIENCE
        while attack.resident() - before >= 64 << 20:
            assert time.monotonic() < until, "what nobody will read is kept"
            time.sleep(0.05)
    attack.toll.check(memory=300 << 20)


def test_who_reads_late_is_answered_all_the_same(tmp_path: Path) -> None:
    with attacked(tmp_path, "Wake 200 pulls of clients that read their responses late") as attack:
        send(attack, "Wide", b"first")
        with connections(attack.port, 2, receive=4096) as found:
            opaques = count(1)
            for one in found:
                assert push(one, parked("Wide", opaques, 100))
            attack.probe.settle()
            send(attack, "Wide", bytes(250_000))
            time.sleep(0.5)
            for one in found:
                got = answers(one, 100)
                wrong = [(one.code, one.remark) for one in got if one.code]
                assert not wrong
                assert {len(pulled(one).bodies[0]) for one in got} == {250_000}
                assert len({answer.opaque for answer in got}) == 100
    attack.toll.check()


def test_parked_pulls_with_bodies(tmp_path: Path) -> None:
    with attacked(tmp_path, "Send pulls that wait and have bodies of 16 MiB") as attack:
        send(attack, "Wide", b"first")
        with connections(attack.port, 40) as found:
            header = waiting("Wide", {})
            pull = encode(request(RequestCode.PULL_MESSAGE, header, bytes(FRAME - 5000)))
            for one in found:
                push(one, pull)
            for _ in range(4):
                send(attack, "Large", bytes(4_000_000))
    attack.toll.check()
