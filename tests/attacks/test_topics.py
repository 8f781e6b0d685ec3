"""Topics of very many queues that get their first messages, and are deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.admin import TopicNameHeader
from tests.attacks.broker_process import attacked
from tests.attacks.flood import attackers
from tests.attacks.size import part
from tests.broker.admin.asking import wanted
from tests.broker.running import to

QUEUES = part(4096)


def test_a_topic_of_very_many_queues_is_filled_and_deleted(tmp_path: Path) -> None:
    with attacked(tmp_path, f"Fill and delete a topic of {QUEUES:,} queues") as attack:

        async def main() -> None:
            async with attackers(attack, 2) as (one, other):
                header = wanted("Attacked", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                create = request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
                assert not await one.ask(create)
                # Each makes a file.
                await one.send(
                    request(RequestCode.SEND_MESSAGE_V2, to("Attacked", queue_id=number), b"a")
                    for number in range(QUEUES)
                )
                await one.answered()
                made = tmp_path / "store/consumequeue/Attacked"
                while not made.exists() or len(list(made.iterdir())) < QUEUES:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                name = TopicNameHeader(topic="Attacked")
                before = one.answers.total()
                await one.send([request(RequestCode.DELETE_TOPIC_IN_BROKER, name)])
                send = request(RequestCode.SEND_MESSAGE_V2, to("Attacked"), b"a")
                # Many at once: this process may get the processor again only when all is over.
                await other.send(send for _ in range(100))
                await other.answered()
                refusals = "".join(other.remarks)
                while "is being deleted" not in refusals:
                    assert one.answers.total() == before, "others were not served meanwhile"
                    refusals = await other.ask(send)
                await one.answered()
                assert not await other.ask(send)

        asyncio.run(main())
    assert len(list((tmp_path / "store/consumequeue/Attacked").iterdir())) == 1
    attack.toll.check()
