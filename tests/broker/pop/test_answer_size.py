"""However large messages are, clients accept the answer, and nothing that it lacks is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.pop.reading import MOST_BYTES
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.pop import PeekHeader
from tests import simulated
from tests.broker.pop.popping import GROUP, TOPIC, acknowledge, pop, send
from tests.broker.running import PATIENCE, running

LARGE = {"maxMessageSize": 2 * MOST_BYTES, "mappedFileSizeCommitLog": 4 * MOST_BYTES}


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("size", [MOST_BYTES // 2, MOST_BYTES // 3, MOST_BYTES + 1])
def test_a_pop_of_large_messages(tmp_path: Path, size: int, *, order: bool) -> None:
    async def test() -> None:
        async with running(tmp_path, **LARGE) as broker:
            for queue_id in range(4):
                await send(broker, str(queue_id) * size, queue_id=queue_id)
            found: list[str] = []
            while len(found) < 4:
                popped = await pop(broker, order=order)
                assert popped, "messages that did not fit are available"
                total = sum(len(each.body) for each in popped)
                assert len(popped) == 1 or total <= MOST_BYTES
                found += [each.body[0] for each in popped]
                await acknowledge(broker, *popped)
            assert sorted(found) == list("0123")
            assert await pop(broker, order=order) == []

    simulated.run(test())


def test_a_peek_of_large_messages(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, **LARGE) as broker:
            for queue_id in range(4):
                await send(broker, "x" * (MOST_BYTES // 2), queue_id=queue_id)
            header = PeekHeader(consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=32)
            asked = request(RequestCode.PEEK_MESSAGE, header)
            answer = await broker.client.request(broker.address, asked, PATIENCE)
            assert answer.code == ResponseCode.SUCCESS
            assert 0 < len(answer.body) <= MOST_BYTES

    simulated.run(test())
