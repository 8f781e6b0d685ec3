"""Single sends are stored and answered as if each was read and checked by itself."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.send.runs import Runs
from mqlake.broker.send.single_frames import SingleFrames
from mqlake.broker.send.singles import SingleSends
from mqlake.dispatch.kernel import is_compiled
from mqlake.formats.host import encode_host
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import FrameReader, Frames
from mqlake.remoting.limits import Limits
from tests import simulated
from tests.broker.pull.test_runs import opaque_of
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.send.random_runs import KEY, TOPIC, UNUSUAL, USUAL, random_fields
from tests.broker.send.streams import warm
from tests.broker.send.test_runs import plain_enough, stored
from tests.broker.send.test_single_frames import made
from tests.protocol.messages import SEND_FIELDS

pytestmark = pytest.mark.skipif(not is_compiled(), reason="only a compiled kernel reads so")

QUEUES = 4
TOPICS = (TOPIC, "Others")
KINDS = tuple(Serialization)


def switch(monkeypatch: pytest.MonkeyPatch, *, on: bool) -> list[int]:
    """Let single sends be taken or not, and no runs; return the list of opaques of those taken."""
    taken: list[int] = []
    usual = SingleSends.answer

    def answer(
        singles: SingleSends, peer: Peer, frames: Frames, reader: SingleFrames
    ) -> bytes | None:
        opaque = reader.read(frames.data, frames.at)[4]
        found = usual(singles, peer, frames, reader) if on else None
        if found is not None:
            taken.append(opaque)
        return found

    monkeypatch.setattr(SingleSends, "answer", answer)
    monkeypatch.setattr(Runs, "_of", lambda *_: None)
    return taken


async def ask_bursts(broker: Running, bursts: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Return the frames that answer these, in their order; those of a burst are sent together."""
    host, port = broker.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: list[bytes] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for burst in bursts:
                writer.write(b"".join(burst))
                for _ in burst:
                    length = await reader.readexactly(4)
                    answers.append(length + await reader.readexactly(int.from_bytes(length)))
    finally:
        writer.close()
    return answers


async def load(broker: Running) -> None:
    """Wait until the kernels are loaded."""
    routes: dict[int, Any] = {route.code: route for route in broker.broker.routes}
    await asyncio.wait_for(routes[RequestCode.SEND_MESSAGE_V2].run.__self__.load(), PATIENCE)


async def ask(broker: Running, *frames: bytes) -> list[Command]:
    """Return the answers to sends, of which one is in flight at a time."""
    data = b"".join(await ask_bursts(broker, [[frame] for frame in frames]))
    return [answer for answer in FrameReader(Limits()).feed(data) if isinstance(answer, Command)]


def random_frame(dice: random.Random, kind: int, opaque: int) -> bytes:
    """Return a send, perhaps an unusual one: bad, of an unknown topic, delayed."""
    fields = random_fields(dice, USUAL) | {"b": dice.choice(TOPICS)}
    if dice.random() < 0.2:
        name = dice.choice(list(UNUSUAL))
        fields |= {name: dice.choice(UNUSUAL[name])}
    if "TIMER_DELAY" in fields["i"]:  # Its answer has the time of delivery.
        fields["i"] = KEY
    body = dice.randbytes(dice.choice((0, 1, 4, 200, 70_000) if dice.random() < 0.1 else (1, 90)))
    return made(kind, plain_enough(fields), body, opaque)


def in_bursts(dice: random.Random, count: int) -> list[list[bytes]]:
    bursts, opaque = list[list[bytes]](), 0
    while opaque < count:
        kind, size = dice.choice(KINDS), dice.choice((1, 1, 1, 1, 1, 2, 4))
        bursts.append([random_frame(dice, kind, opaque + number) for number in range(size)])
        opaque += size
    return bursts


def without_address(answer: bytes, broker: Running) -> bytes:
    """Leave out of an answer what differs with the ports of the broker and of the client."""
    host = encode_host(broker.address).hex().upper().encode()
    assert b"msgId" not in answer or host in answer
    text = re.sub(rb"127\.0\.0\.1:\d+", b"address", answer[8:].replace(host, b"host"))
    return answer[4:5] + text


def counts(broker: Running) -> tuple[Any, ...]:
    put_times: Any = broker.state.stats.put_times
    server: Any = broker.broker
    ends = broker.state.store.offsets.table
    return dict(ends), sum(put_times._counts), server._server.counts, broker.state.busy.counts


async def outcome(broker: Running, bursts: Sequence[Sequence[bytes]]) -> tuple[Any, ...]:
    """Return what bursts of sends lead to."""
    answers = await ask_bursts(broker, bursts)
    records = [
        stored(one)
        for topic in TOPICS
        for queue in range(QUEUES)
        for one in broker.records(topic, queue)
    ]
    # A refusal is answered before the sends that wait for the end of the read.
    found = {opaque_of(answer): without_address(answer, broker) for answer in answers}
    return found, records, broker.state.store.core.log.end, counts(broker)


@pytest.mark.parametrize("seed", range(3))
def test_single_sends_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    bursts = in_bursts(random.Random(seed), 1500)

    async def run(path: Path) -> tuple[Any, ...]:
        async with running(path) as broker:
            await warm(broker)
            return await outcome(broker, bursts)

    with monkeypatch.context() as patch:
        taken = switch(patch, on=True)
        singly = simulated.run(run(tmp_path / "singly"))
        assert len(taken) > 200
    switch(monkeypatch, on=False)
    for found, expected in zip(singly, simulated.run(run(tmp_path / "otherwise")), strict=True):
        assert found == expected
    kinds = {taken_kind for burst in bursts for taken_kind in (frame[4] for frame in burst)}
    assert kinds == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_sends_continue_in_the_next_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    taken = switch(monkeypatch, on=True)

    async def run() -> None:
        async with running(tmp_path, mappedFileSizeCommitLog=20_000) as broker:
            await warm(broker)
            fields = SEND_FIELDS | {"i": KEY, "e": "0"}
            answers = await ask(
                broker, *(made(kind, fields, b"%d" % number, number) for number in range(300))
            )
            assert [answer.code for answer in answers] == [ResponseCode.SUCCESS] * 300
            bodies = [record.body for record in broker.records(TOPIC)]
            assert bodies == [b"hello", *(b"%d" % number for number in range(300))]
            assert broker.state.store.core.log.end > 2 * 20_000

    simulated.run(run())
    assert 280 < len(taken) < 300


@pytest.mark.parametrize("kind", KINDS)
def test_changed_settings_and_topics_count_for_the_next_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    taken = switch(monkeypatch, on=True)
    frame = made(kind, SEND_FIELDS | {"i": KEY})

    async def run() -> None:
        async with running(tmp_path) as broker:
            state, live = broker.state, broker.runtime.live

            async def answer(data: bytes = frame) -> Command:
                await load(broker)
                (found,) = await ask(broker, data)
                return found

            assert (await broker.send(to(TOPIC, properties=KEY))).code == ResponseCode.SUCCESS
            taken.clear()
            assert (await answer()).code == ResponseCode.SUCCESS
            assert len(taken) == 1
            live.replace(msgspec.structs.replace(live.now, region_id="Elsewhere"))
            assert (await answer()).fields["MSG_REGION"] == "Elsewhere"
            assert broker.records(TOPIC, 3)[-1].properties["MSG_REGION"] == "Elsewhere"
            assert len(taken) == 2
            topic = state.topics.get(TOPIC)
            assert topic is not None
            state.topics.put(msgspec.structs.replace(topic, write_queue_nums=2, read_queue_nums=2))
            refused = await answer()
            assert refused.code == ResponseCode.INVALID_PARAMETER
            assert "request queueId[3] is illegal" in (refused.remark or "")
            state.topics.put(msgspec.structs.replace(topic, order=True))
            assert (await answer()).code == ResponseCode.SUCCESS
            assert len(taken) == 3
            live.replace(msgspec.structs.replace(live.now, broker_permission=4))
            assert (await answer()).code == ResponseCode.NO_PERMISSION
            live.replace(msgspec.structs.replace(live.now, broker_permission=6))
            live.replace(msgspec.structs.replace(live.now, max_message_size=3))
            assert (await answer()).code == ResponseCode.MESSAGE_ILLEGAL
            assert (await answer(made(kind, SEND_FIELDS | {"i": KEY}, b"abc"))).code == 0
            assert len(taken) == 4

    simulated.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_takes_no_messages_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    taken = switch(monkeypatch, on=True)
    frame = made(kind, SEND_FIELDS | {"i": KEY})

    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            taken.clear()
            assert (await ask(broker, frame))[0].code == ResponseCode.SUCCESS
            assert len(taken) == 1
            broker.state.store.core._appender.set_not_writable("full")  # pyright: ignore[reportPrivateUsage]
            assert (await ask(broker, frame))[0].code == ResponseCode.SERVICE_NOT_AVAILABLE

    simulated.run(run())
    assert len(taken) == 1


def test_under_sync_flush_each_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = switch(monkeypatch, on=True)

    async def run() -> None:
        async with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
            await broker.send(to(TOPIC, properties=KEY))
            for kind in KINDS:
                answers = await ask(broker, made(kind, SEND_FIELDS | {"i": KEY}))
                assert answers[0].code == ResponseCode.SUCCESS

    simulated.run(run())
    assert not taken


def test_sends_keep_their_order_with_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is left is put at the end of the read, or before the next one that is taken."""
    taken = switch(monkeypatch, on=True)
    usual, left = SEND_FIELDS | {"i": KEY, "e": "0"}, SEND_FIELDS | {"i": "KEYS\1k\2", "e": "0"}
    fields = [usual, left, *[usual] * 20]
    burst = [made(0, each, b"%d" % number, number) for number, each in enumerate(fields)]

    async def run() -> None:
        async with running(tmp_path) as broker:
            await warm(broker)
            answers = b"".join(await ask_bursts(broker, [burst]))
            found = [one for one in FrameReader(Limits()).feed(answers) if isinstance(one, Command)]
            assert [answer.opaque for answer in found] == list(range(len(fields)))
            offsets = [int(answer.fields["queueOffset"]) for answer in found]
            assert offsets == list(range(1, len(fields) + 1))
            bodies = [record.body for record in broker.records(TOPIC)][1:]
            assert bodies == [b"%d" % number for number in range(len(fields))]

    simulated.run(run())
    # Those that follow one that is left are read one by one for a while.
    assert 0 in taken
    assert 1 not in taken
    assert len(fields) - 1 in taken
