"""What a broker accepts over the wire comes out again, popped, given back or given up.

Each message has its number in a property.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.send import SendBackHeader, SendMessageResponseHeader
from mqlake.store.append.message import Message
from mqlake.store.delivery.put_again import read_entry
from tests.broker.pop.popping import GROUP, TOPIC, Popped, header, read
from tests.broker.running import Running, running, to
from tests.odd.sent import COUNT, SEEDS, Sent
from tests.odd_messages import odd_body, odd_properties

NUMBER = "ODD"
PATIENCE = 60


class Sending:
    """Odd messages for one broker, and which of them it has accepted."""

    def __init__(self, broker: Running, seed: str) -> None:
        self.broker, self.dice = broker, Random(seed)
        self.accepted: dict[str, Sent] = {}
        self.offsets: dict[str, int] = {}

    async def send(self, number: int, *, with_key: bool = False) -> None:
        """Send a message, and note whether it is accepted."""
        # A header is JSON text: what is no UTF-8 cannot be said in it.
        text = odd_properties(self.dice, 32_000, of_system=self.dice.random() < 0.2)
        key = f"UNIQ_KEY\x01{number:032X}\x02" if with_key else ""
        properties = f"{NUMBER}\x01{number}\x02{key}{text.decode('utf-8', 'replace')}"
        message = Message(
            TOPIC,
            odd_body(self.dice, 1 << 16),
            flag=self.dice.choice((0, -1, (1 << 31) - 1)),
            born_timestamp=self.dice.choice((1, 1_700_000_000_000, (1 << 63) - 1)),
            encoded_properties=properties.encode(),
        )
        asked = to(
            TOPIC,
            properties=properties,
            flag=message.flag,
            born_timestamp=message.born_timestamp,
            queue_id=number % 4,
        )
        answer = await self.broker.send(asked, message.body)
        if answer.code == ResponseCode.SUCCESS:
            _, offset = decode_message_id(answer.header(SendMessageResponseHeader).msg_id)
            self.accepted[str(number)] = Sent.of(message)
            self.offsets[str(number)] = offset
        else:
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL, answer
            assert answer.remark
            assert "\n" not in answer.remark

    def check(self, record: Record, data: bytes, stage: str) -> str:
        """Check a record; return the number of its message."""
        number = record.properties[NUMBER]
        self.accepted[number].check(data, stage)
        return number

    def check_stored(self, stage: str) -> None:
        """Check the records that the answers named."""
        core = self.broker.state.store.core
        for number, offset in self.offsets.items():
            record = self.broker.state.store.record_at(offset)
            assert record is not None, (stage, number)
            assert self.check(record, bytes(core.log.read(offset, record.size)), stage) == number

    def stored(self, topic: str, queue_id: int = 0) -> dict[str, Record]:
        """Return what is in a queue, checked, by the messages' numbers."""
        core = self.broker.state.store.core
        core.tick()
        queue = core.queues.queue(topic, queue_id)
        found: dict[str, Record] = {}
        for offset in range(queue.end):
            entry = queue.entry(offset)
            assert entry is not None
            stored = read_entry(core.log, entry)
            assert stored is not None
            data = bytes(core.log.read(entry.physical_offset, entry.size))
            found[self.check(stored.record, data, topic)] = stored.record
        return found


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 3 * PATIENCE))


@pytest.mark.parametrize("seed", SEEDS)
def test_sent_one_by_one(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            sending = Sending(broker, f"single {seed}")
            for number in range(COUNT):
                end, known = broker.state.store.core.log.end, len(sending.accepted)
                await sending.send(number)
                if len(sending.accepted) == known:
                    assert broker.state.store.core.log.end == end
            sending.check_stored("sent")
            assert len(sending.accepted) > COUNT // 2

    run(test())


@pytest.mark.parametrize("seed", SEEDS)
def test_sent_in_runs(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            sending = Sending(broker, f"run {seed}")
            await sending.send(0)  # the topic is made
            numbers = range(1, COUNT)
            await asyncio.gather(*(sending.send(n, with_key=n % 3 > 0) for n in numbers))
            sending.check_stored("run")
            assert len(sending.accepted) > COUNT // 2

    run(test())


@pytest.mark.parametrize("seed", SEEDS)
def test_popped_and_popped_again(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as broker:
            sending = Sending(broker, f"pop {seed}")
            for number in range(COUNT // 2):
                await sending.send(number)
            broker.state.store.core.tick()
            first = await collect(broker, len(sending.accepted), invisible_time=300)
            assert set(first) == set(sending.accepted)
            # Nobody acknowledges them: all come again.
            again = await collect(broker, len(sending.accepted), poll_time=2000)
            assert set(again) == set(sending.accepted)
            for number, popped in {**first, **again}.items():
                sent = sending.accepted[number]
                assert popped.record.body == sent.message.body
                assert popped.record.flag == sent.message.flag
            retry = {}
            for queue_id in range(8):
                retry |= sending.stored(f"%RETRY%{GROUP}_{TOPIC}", queue_id)
            assert set(retry) == set(sending.accepted)

    run(test())


async def collect(broker: Running, count: int, **fields: object) -> dict[str, Popped]:
    found: dict[str, Popped] = {}
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            asked = request(RequestCode.POP_MESSAGE, header(**fields))
            answer = await broker.client.request(broker.address, asked, PATIENCE)
            for popped in read(answer):
                found.setdefault(popped.record.properties[NUMBER], popped)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_given_back_and_given_up(tmp_path: Path, seed: int) -> None:
    async def test() -> None:
        async with running(tmp_path, messageDelayLevel="1s") as broker:
            sending = Sending(broker, f"back {seed}")
            for number in range(COUNT // 2):
                await sending.send(number)
            for offset in sending.offsets.values():
                await give_back(broker, offset)
            retry: dict[str, Record] = {}
            async with asyncio.timeout(PATIENCE):
                while set(retry) != set(sending.accepted):
                    await asyncio.sleep(0.1)
                    retry = sending.stored(f"%RETRY%{GROUP}")
            for record in retry.values():
                await give_back(broker, record.physical_offset, max_reconsume_times=1)
            assert set(sending.stored(f"%DLQ%{GROUP}")) == set(sending.accepted)

    run(test())


async def give_back(broker: Running, offset: int, **fields: int) -> None:
    asked = SendBackHeader(offset=offset, group=GROUP, delay_level=1, **fields)
    answer = await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, asked)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
