"""No producer hears of a message that is not confirmed, and no consumer gets it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.offsets import OffsetHeader, QueueHeader
from mqlake.protocol.headers.send import SendBackHeader
from tests import simulated
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.send.random_sends import usual
from tests.broker.send.streams import ask, warm
from tests.broker.transactions.half_messages import PAIRS, prepare
from tests.store.held_watermark import HeldWatermark
from tests.until import until

RUN = 20


async def on_disk(broker: Running, messages: int) -> None:
    """Wait until so many messages were put, and all are on the disk."""
    store = broker.state.store
    await until(lambda: sum(store.offsets.values()) >= messages)
    await until(lambda: store.watermarks.flushed >= store.watermarks.end)
    # Whoever is acknowledged by the sync gets to hear of it.
    await asyncio.sleep(0.1)


def test_answers_wait_until_messages_are_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldWatermark(monkeypatch)
    settings = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": 60_000}
    give_back = SendBackHeader(offset=0, group="group", delay_level=1)
    stream = b"".join(usual(random.Random(3), each) for each in range(RUN))

    async def run() -> None:
        async with running(tmp_path, **settings) as broker:
            await warm(broker)
            end_half = await prepare(broker)
            put = sum(broker.state.store.offsets.values())
            held.hold(broker.state.store.watermarks.end)
            batch = to("Orders", batch=True), encode_batch([(0, b"a", b""), (0, b"b", b"")])
            asked = [
                broker.send(to("Orders")),
                broker.ask(RequestCode.SEND_BATCH_MESSAGE, *batch),
                broker.send(to("Orders", properties=PAIRS)),
                broker.ask(RequestCode.END_TRANSACTION, end_half),
                broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, give_back),
                ask(broker, stream, RUN),
            ]
            tasks = [asyncio.ensure_future(each) for each in asked]
            # A message, a batch of two, a half, a commit and its op, a delayed message, a run.
            await on_disk(broker, put + 1 + 2 + 1 + 2 + 1 + RUN)
            assert [task.done() for task in tasks] == [False] * len(tasks)
            assert not broker.records("Orders", 0)
            answer = await broker.ask(RequestCode.GET_MAX_OFFSET, QueueHeader("Orders", 0))
            assert answer.header(OffsetHeader).offset == 0
            held.release()
            async with asyncio.timeout(PATIENCE):
                *answers, of_run = await asyncio.gather(*tasks)
            codes = {answer.code for answer in (*answers, *of_run.values())}
            assert codes == {ResponseCode.SUCCESS}
            assert len(broker.records("Orders", 0)) == 3
            assert len(broker.records("Orders", 1)) == 1

    simulated.run(run())
