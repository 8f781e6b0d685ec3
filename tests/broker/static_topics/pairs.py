"""Two brokers with a name server in the event loop of a test, and static topics on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem, TopicQueueMapping
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.body import encode_unquoted
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.headers.offsets import OffsetHeader
from tests.broker.running import Running, running, to
from tests.broker.slave.pairs import registered

TOPIC = "Static"
A, B = "broker-a", "broker-b"


def item(broker: str, gen: int = 0, logic: int = 0, queue: int = 0, end: int = -1) -> Any:
    """Return a stretch that starts at offset 0 of a broker's queue."""
    return LogicQueueMappingItem(
        bname=broker, gen=gen, logic_offset=logic, queue_id=queue, end_offset=end
    )


def mapping(
    broker: str,
    queues: Mapping[int, Sequence[Any]],
    epoch: int = 1,
    total: int = 1,
    **fields: Any,
) -> TopicQueueMapping:
    """Return a mapping of `TOPIC` for a broker."""
    hosted = {queue_id: list(items) for queue_id, items in queues.items()}
    known: dict[str, Any] = {
        "topic": TOPIC,
        "total_queues": total,
        "bname": broker,
        "epoch": epoch,
        "hosted_queues": hosted,
    }
    return TopicQueueMapping(**(known | fields))


async def put(
    broker: Running,
    wanted: TopicQueueMapping,
    queues: int = 1,
    *,
    force: bool = False,
    topic: str = TOPIC,
) -> Command:
    """Send a mapping as Java's tools do: integer keys are not quoted."""
    header = CreateTopicHeader(
        topic=topic,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        force=force,
    )
    code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
    return await broker.ask(code, header, encode_unquoted(wanted))


async def sent(broker: Running, count: int, queue_id: int = 0, prefix: str = "m") -> list[int]:
    """Send messages to a logic queue; return their offsets in it."""
    offsets: list[int] = []
    for number in range(count):
        header = to(TOPIC, queue_id=queue_id)
        answer = await broker.send(header, f"{prefix}{number}".encode())
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        assert answer.fields["queueId"] == str(max(queue_id, 0))
        offsets.append(int(answer.fields["queueOffset"]))
    broker.state.store.core.tick()  # dispatches them
    return offsets


async def offset(broker: Running, code: int, header: Any) -> int | Command:
    """Return the offset that a broker answers, or its answer if it refuses."""
    answer = await broker.ask(code, header)
    return answer.header(OffsetHeader).offset if answer.code == ResponseCode.SUCCESS else answer


@asynccontextmanager
async def two_brokers(path: Path, **settings: object) -> AsyncIterator[tuple[Running, Running]]:
    """Run a name server and two brokers, `A` and `B`."""
    names = NameServer(NamesrvSettings(bind_address="127.0.0.1", listen_port=0))
    port = await names.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(names.stop)
        stack.enter_context(registered())
        common = {"namesrvAddr": f"127.0.0.1:{port}", "forwardTimeout": 60_000, **settings}
        yield (
            await stack.enter_async_context(running(path / "a", brokerName=A, **common)),
            await stack.enter_async_context(running(path / "b", brokerName=B, **common)),
        )


@asynccontextmanager
async def moved(
    path: Path, count: int = 5, **settings: object
) -> AsyncIterator[tuple[Running, Running]]:
    """Run two brokers; queue 0 was moved from `A`, which has messages of it, to `B` at 10,000."""
    async with two_brokers(path, **settings) as (a, b):
        assert (await put(a, mapping(A, {0: [item(A)]}))).code == ResponseCode.SUCCESS
        await sent(a, count)
        queues = {0: [item(A), item(B, gen=1, logic=10_000)]}
        for broker, name in ((b, B), (a, A)):
            answer = await put(broker, mapping(name, queues, epoch=2))
            assert answer.code == ResponseCode.SUCCESS, answer.remark
        yield a, b
