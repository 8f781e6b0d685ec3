"""Each case is a coroutine function of the name servers' address and a word no other case has."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple

import msgspec
import pytest

from mqlake.arrow import SETTINGS, ArrowConsumer
from mqlake.client import (
    ClientError,
    Compression,
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    MessageQueue,
    NoReplyError,
    NoRouteError,
    NotStoredError,
    PoppedMessage,
    Producer,
    PullConsumer,
    SendResult,
    SendStatus,
    SimpleConsumer,
    TransactionState,
)
from mqlake.client.cluster import Cluster
from mqlake.client.message import ReceivedMessage
from mqlake.protocol.bodies.pop import RequestMode
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.strategies import ALL_QUEUES
from tests.client.patience import patience
from tests.until import PATIENCE, until

Case = Callable[[str, str], Coroutine[Any, Any, None]]

FIRST = ConsumerSettings(consume_from="first", handover=0.1)
IN_ORDER = ConsumerSettings(consume_from="first", in_order=True, handover=0.1, suspend=0.1)


async def collect(consumer: Consumer, count: int) -> list[ConsumedMessage]:
    """Acknowledge and return so many messages."""
    found: list[ConsumedMessage] = []
    async with asyncio.timeout(PATIENCE):
        async for message in consumer:
            found.append(message)
            assert await message.ack()
            if len(found) == count:
                break
    return found


async def queues_known(consumer: PullConsumer, topic: str) -> Sequence[MessageQueue]:
    """Return the queues of a topic, of which name servers hear a little after it was created."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await consumer.queues_of(topic)
            except NoRouteError:
                await asyncio.sleep(0.05)


async def until_counted(consumer: PullConsumer, queue: MessageQueue, count: int) -> None:
    """Return once a broker counts so many messages, a moment after they were sent."""

    async def is_counted() -> bool:
        return await consumer.end_of(queue) >= count

    await until(is_counted, PATIENCE)


async def tasks_left(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Return the tasks that are still there after a minute."""
    with suppress(TimeoutError):
        await until(lambda: not asyncio.all_tasks() - before, 60.0)
    return asyncio.all_tasks() - before


async def every_field_arrives(names: str, word: str) -> None:
    async with Producer(names) as producer:
        sent = await producer.send(
            Message(
                topic=word,
                body=b"\0body\xff",
                tags="red",
                keys=["k1", "k2"],
                properties={"colour": "röt"},
                flag=7,
            )
        )
        assert sent.status is SendStatus.SEND_OK
        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            (message,) = await collect(consumer, 1)
    assert message.topic == word
    assert message.body == b"\0body\xff"
    assert (message.tags, message.keys, message.flag) == ("red", ["k1", "k2"], 7)
    assert message.properties["colour"] == "röt"
    assert message.message_id == sent.message_id == message.unique_key
    assert message.offset_message_id == sent.offset_message_id
    assert (message.queue, message.queue_offset) == (sent.queue, sent.queue_offset)
    assert message.reconsume_times == 0


async def batches_arrive_in_order(names: str, word: str) -> None:
    messages = [
        Message(topic=word, body=b"%d" % number, tags="odd" if number % 2 else "even")
        for number in range(300)
    ]
    async with Producer(names) as producer:
        sent = await producer.send_many(messages)
        assert len({result.message_id for result in sent}) == 300
        async with Consumer(names, f"{word}-group", {word: "odd"}, settings=FIRST) as consumer:
            found = await collect(consumer, 150)
    by_id = {result.message_id: number for number, result in enumerate(sent)}
    assert all(message.body == b"%d" % by_id[message.message_id] for message in found)
    assert {(message.queue, message.queue_offset) for message in found} == {
        (result.queue, result.queue_offset) for result in sent[1::2]
    }


async def compressed_bodies_are_read(names: str, word: str) -> None:
    body = b"a long body, " * 2000
    async with Producer(names, compression=Compression(over=100)) as producer:
        await producer.send(Message(topic=word, body=body))
        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            (message,) = await collect(consumer, 1)
    assert message.body == body
    assert message.sys_flag & 1


async def arrow_batches_bring_every_field(names: str, word: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, consume_from="first", handover=0.1)
    long = b"a long body, " * 2000
    async with Producer(names, compression=Compression(over=100)) as producer:
        several = [Message(topic=word, body=b"%d" % n, tags="red") for n in range(200)]
        sent = list(await producer.send_many(several))
        sent.append(
            await producer.send(
                Message(
                    topic=word,
                    body=long,
                    tags="red",
                    keys=["k1", "k2"],
                    properties={"colour": "röt"},
                    flag=7,
                )
            )
        )
        await producer.send(Message(topic=word, body=b"not wanted", tags="blue"))
    rows: list[dict[str, Any]] = []
    group = f"{word}-group"
    async with ArrowConsumer(names, group, {word: "red"}, settings=settings) as consumer:
        async with asyncio.timeout(PATIENCE):
            async for batch in consumer.arrow_batches():
                places = {(batch.queue, row["queueOffset"]) for row in batch.records.to_pylist()}
                assert places <= {(result.queue, result.queue_offset) for result in sent}
                rows += batch.records.to_pylist()
                assert not batch.faults
                assert await batch.ack()
                if len(rows) == len(sent):
                    break
    assert {row["body"] for row in rows} == {long, *(message.body for message in several)}
    (found,) = (row for row in rows if row["body"] == long)
    assert (found["topic"], found["tags"], found["keys"]) == (word, "red", ["k1", "k2"])
    assert (found["flag"], found["reconsumeTimes"]) == (7, 0)
    assert dict(found["properties"])["colour"] == "röt"
    assert dict(found["properties"])["UNIQ_KEY"] == sent[-1].message_id
    assert found["msgId"] == sent[-1].offset_message_id
    plain = ConsumerSettings(consume_from="last", handover=0.1)
    async with Consumer(names, group, {word: "red"}, settings=plain) as consumer:
        assert await consumer.receive(0.5) is None, "what was acknowledged does not come again"


async def sharding_keys_keep_their_order(names: str, word: str) -> None:
    keys = ["anna", "bert", "cleo"]
    async with Producer(names) as producer:
        for number in range(30):
            key = keys[number % 3]
            await producer.send(
                Message(topic=word, body=f"{key} {number}".encode(), sharding_key=key)
            )
        got: list[bytes] = []

        async def handle(message: ConsumedMessage) -> None:
            await asyncio.sleep(0)
            got.append(message.body)

        async with Consumer(names, f"{word}-group", word, settings=IN_ORDER) as consumer:
            running = asyncio.create_task(consumer.run(handle, concurrency=8))
            await until(lambda: len(got) == 30)
        await running
    for key in keys:
        numbers = [int(body.split()[1]) for body in got if body.startswith(key.encode())]
        assert numbers == sorted(numbers)
        assert len(numbers) == 10


async def what_fails_in_order_comes_again_in_its_place(names: str, word: str) -> None:
    async with Producer(names) as producer:
        for number in range(3):
            await producer.send(Message(topic=word, body=b"%d" % number, sharding_key="one"))
    got: list[tuple[bytes, int]] = []

    async def handle(message: ConsumedMessage) -> None:
        got.append((message.body, message.reconsume_times))
        if message.body == b"1" and message.reconsume_times < 2:
            raise RuntimeError("not yet")

    async with Consumer(names, f"{word}-group", word, settings=IN_ORDER) as consumer:
        running = asyncio.create_task(consumer.run(handle))
        await until(lambda: len(got) == 5)
    await running
    assert got == [(b"0", 0), (b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0)]


async def what_fails_comes_again_by_the_retry_topic(names: str, word: str) -> None:
    got: list[ReceivedMessage] = []

    async def handle(message: ConsumedMessage) -> None:
        got.append(message)
        if not message.reconsume_times:
            await message.retry_later(1)

    async with Producer(names) as producer:
        sent = await producer.send(Message(topic=word, body=b"again"))
        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            running = asyncio.create_task(consumer.run(handle))
            await until(lambda: len(got) == 2)
        await running
    first, second = got
    assert (second.body, second.topic, second.reconsume_times) == (b"again", word, 1)
    assert second.retry_topic == f"%RETRY%{word}-group"
    assert first.message_id == second.message_id == sent.message_id


async def what_is_held_too_long_comes_again(names: str, word: str) -> None:
    settings = ConsumerSettings(consume_from="first", handling_timeout=0.2)
    async with Producer(names) as producer:
        sent = await producer.send(Message(topic=word, body=b"held"))
    async with Consumer(names, f"{word}-group", word, settings=settings) as consumer:
        first, again = await consumer.receive(PATIENCE), await consumer.receive(PATIENCE)
        assert first is not None
        assert again is not None
        assert again.message_id == sent.message_id
        assert again.reconsume_times == 1
        assert not await first.ack()
        while not await again.ack():  # on a busy machine it, too, may be held too long
            again = await consumer.receive(PATIENCE)
            assert again is not None
            assert again.message_id == sent.message_id


async def what_fails_too_often_is_dead(names: str, word: str) -> None:
    settings = ConsumerSettings(consume_from="first", max_retries=0)
    async with Producer(names) as producer:
        await producer.send(Message(topic=word, body=b"dead"))
    async with Consumer(names, f"{word}-group", word, settings=settings) as consumer:
        async with asyncio.timeout(PATIENCE):
            async for message in consumer:
                assert await message.retry_later()
                break
    dead = f"%DLQ%{word}-group"
    async with Consumer(names, f"{word}-undertaker", dead, settings=FIRST) as consumer:
        (message,) = await collect(consumer, 1)
    assert message.body == b"dead"


async def a_group_goes_on_where_it_was(names: str, word: str) -> None:
    async with Producer(names) as producer:
        await producer.send_many([Message(topic=word, body=b"%d" % n) for n in range(40)])
        group, seen = f"{word}-group", set[tuple[str, int, int]]()
        for _ in range(4):
            async with Consumer(names, group, word, settings=FIRST) as consumer:
                found = await collect(consumer, 10)
            places = {(m.queue.broker_name, m.queue.queue_id, m.queue_offset) for m in found}
            assert not places & seen
            seen |= places
    assert len(seen) == 40


async def two_members_share_the_queues(names: str, word: str) -> None:
    got: list[bytes] = []

    async def handle(message: ConsumedMessage) -> None:
        got.append(message.body)

    async with Producer(names) as producer:
        await producer.send(Message(topic=word, body=b"first"))
        group = f"{word}-group"
        async with (
            Consumer(names, group, word, settings=FIRST) as one,
            Consumer(names, group, word, settings=FIRST) as two,
        ):
            running = [asyncio.create_task(each.run(handle)) for each in (one, two)]

            def shares() -> list[int]:
                topics = [[q for q in each.queues if q.topic == word] for each in (one, two)]
                return sorted(len(queues) for queues in topics)

            await until(lambda: shares() == [2, 2])
            assert not one.queues & two.queues
            messages = [Message(topic=word, body=b"%d" % number) for number in range(100)]
            for message in messages:
                await producer.send(message)
            await until(lambda: len(set(got)) == 101)
        await asyncio.gather(*running)
    assert Counter(got).most_common(1)[0][1] <= 2


async def broadcasting_members_get_everything(names: str, word: str) -> None:
    settings = ConsumerSettings(broadcasting=True)
    got: dict[str, list[ConsumedMessage]] = {f"{word}-1": [], f"{word}-2": []}

    async def take(consumer: Consumer, instance: str) -> None:
        async for message in consumer:
            got[instance].append(message)
            assert await message.ack()

    def numbers(instance: str) -> list[bytes]:
        return sorted(message.body for message in got[instance] if message.body.isdigit())

    def queues(instance: str) -> set[MessageQueue]:
        return {message.queue for message in got[instance]}

    async with Producer(names) as producer:
        before = await producer.send(Message(topic=word, body=b"before"))
        async with PullConsumer(names, "anybody") as reader:
            await queues_known(reader, word)
            await until_counted(reader, before.queue, before.queue_offset + 1)
        group = f"{word}-group"
        async with AsyncExitStack() as stack:
            taking: list[asyncio.Task[None]] = []
            for instance in got:
                consumer = Consumer(names, group, word, settings=settings, instance=instance)
                await stack.enter_async_context(consumer)
                taking.append(asyncio.create_task(take(consumer, instance)))
            # A member asks where a queue ends when it begins to read it: what it gets tells when.
            async with asyncio.timeout(PATIENCE):
                while any(len(queues(instance)) < 4 for instance in got):
                    for queue in await producer.queues(word):
                        await producer.send(Message(topic=word, body=b"probe"), queue=queue)
                    await asyncio.sleep(0.1)
            wanted = [b"%d" % number for number in range(8)]
            for body in wanted:
                await producer.send(Message(topic=word, body=body))
            await until(lambda: all(len(numbers(instance)) >= 8 for instance in got))
        await asyncio.gather(*taking)
    for instance, messages in got.items():
        assert numbers(instance) == wanted
        assert {message.body for message in messages} == {b"probe", *wanted}


async def delayed_messages_come_late(names: str, word: str) -> None:
    async with Producer(names) as producer:
        sent = await producer.send(Message(topic=word, body=b"late", delay_level=1))
        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            (message,) = await collect(consumer, 1)
    assert message.body == b"late"
    assert message.message_id == sent.message_id
    assert message.store_timestamp - message.born_timestamp >= 900


async def transactions_are_committed_or_dropped(names: str, word: str) -> None:
    async def check(half: ReceivedMessage) -> TransactionState:
        return TransactionState.COMMIT if half.body == b"kept" else TransactionState.ROLLBACK

    async with Producer(names, group=f"{word}-producers", check=check) as producer:
        await producer.send(Message(topic=word, body=b"plain"))
        async with await producer.transaction(Message(topic=word, body=b"kept")):
            pass
        with pytest.raises(RuntimeError, match="changed my mind"):
            async with await producer.transaction(Message(topic=word, body=b"dropped")):
                raise RuntimeError("changed my mind")
        await producer.send(Message(topic=word, body=b"end"))
        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            found = await collect(consumer, 3)
    assert {message.body for message in found} == {b"plain", b"kept", b"end"}
    async with Producer(names) as producer:
        with pytest.raises(ClientError, match="needs `check`"):
            await producer.transaction(Message(topic=word, body=b"never"))


async def a_request_is_replied_to(names: str, word: str) -> None:
    # With a client id of its own: while any producer of a client leaves, replies can be lost.
    async with (
        Producer(names, group=f"{word}-askers", instance=word) as producer,
        Producer(names, group=f"{word}-askers", instance=word),
    ):
        await producer.send(Message(topic=word, body=b"nobody waits"))

        async def handle(message: ConsumedMessage) -> None:
            if message.body != b"nobody waits":
                await producer.reply(message, message.body.upper())

        async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
            running = asyncio.create_task(consumer.run(handle))
            reply = await producer.request(Message(topic=word, body=b"ping"), timeout=PATIENCE)
            assert reply.body == b"PING"
        await running
        with pytest.raises(NoReplyError, match="no reply within"):
            await producer.request(Message(topic=word, body=b"nobody"), timeout=5)


async def replies_arrive_after_another_producer_has_left(names: str, word: str) -> None:
    async with (
        Producer(names, group=f"{word}-askers", instance=word) as producer,
        Consumer(names, f"{word}-group", word, settings=FIRST) as consumer,
    ):

        async def handle(message: ConsumedMessage) -> None:
            await producer.reply(message, message.body)

        running = asyncio.create_task(consumer.run(handle))
        for number in range(2):
            async with Producer(names, group=f"{word}-other", instance=word) as other:
                await other.send_oneway(Message(topic=f"{word}-elsewhere", body=b"heard by nobody"))
            ask = Message(topic=word, body=b"%d" % number)
            assert (await producer.request(ask, timeout=PATIENCE)).body == ask.body
        await consumer.close()
        await running


async def send_numbers(names: str, topic: str, count: int) -> list[SendResult]:
    """Numbers as bodies, all in one queue.

    A send that a busy broker answers too late is repeated and may be stored twice, so a test takes
    the offsets from the results.
    """
    async with Producer(names) as producer:
        return [
            await producer.send(Message(topic=topic, body=b"%d" % number, sharding_key="one"))
            for number in range(count)
        ]


async def an_offset_can_be_sought(names: str, word: str) -> None:
    sent = await send_numbers(names, word, 6)
    async with Consumer(names, f"{word}-group", word, settings=FIRST) as consumer:
        await collect(consumer, 6)
        await consumer.seek(sent[4].queue, sent[4].queue_offset)
        again = await collect(consumer, 2)
    assert [message.body for message in again] == [b"4", b"5"]


async def a_listener_may_seek_and_commit(names: str, word: str) -> None:
    sent = await send_numbers(names, word, 6)
    queue = sent[4].queue
    revoked: list[set[MessageQueue]] = []

    async def assigned(queues: set[MessageQueue]) -> None:
        if queue in queues:
            await consumer.seek(queue, sent[4].queue_offset)

    async def left(queues: set[MessageQueue]) -> None:
        await consumer.commit()
        revoked.append(queues)

    consumer = Consumer(
        names, f"{word}-group", word, settings=FIRST, on_assigned=assigned, on_revoked=left
    )
    async with consumer:
        found = await collect(consumer, 2)
        assert [message.body for message in found] == [b"4", b"5"]
        queues = consumer.queues
    assert revoked == [set(queues)]
    async with PullConsumer(names, f"{word}-group") as puller:
        await puller.queues_of(word)
        assert await puller.committed(queue) == sent[5].queue_offset + 1


async def broadcasting_members_seek_backwards(names: str, word: str) -> None:
    settings = ConsumerSettings(consume_from="first", broadcasting=True)
    sent = await send_numbers(names, word, 4)
    async with Consumer(names, f"{word}-group", word, settings=settings) as consumer:
        await collect(consumer, 4)
        await consumer.seek(sent[1].queue, sent[1].queue_offset)
    async with Consumer(names, f"{word}-group", word, settings=settings) as consumer:
        found = await collect(consumer, 3)
    assert [message.body for message in found] == [b"1", b"2", b"3"]


async def a_message_that_is_too_long_is_refused(names: str, word: str) -> None:
    async with Producer(names, max_message_size=1 << 30, compression=None) as producer:
        with pytest.raises(NotStoredError):
            await producer.send(Message(topic=word, body=bytes(5 << 20)), timeout=PATIENCE)


async def chosen_queues_are_polled(names: str, word: str) -> None:
    async with Producer(names) as producer:
        sent = await producer.send_many([Message(topic=word, body=b"%d" % n) for n in range(50)])
    (queue,) = {result.queue for result in sent}
    async with PullConsumer(names, f"{word}-group", settings=FIRST) as consumer:
        queues = await queues_known(consumer, word)
        consumer.assign(queues)
        found: list[ReceivedMessage] = []
        async with asyncio.timeout(PATIENCE):
            while len(found) < 20:
                found += await consumer.poll(most=10)
        await consumer.commit()
        assert await consumer.committed(queue) == len(found)
        await until_counted(consumer, queue, 50)
        assert await consumer.end_of(queue) == 50
        assert await consumer.offset_at(queue, 0) == 0
        await consumer.seek(queue, 49)
        (last,) = await consumer.poll(timeout=PATIENCE)
        assert (last.body, last.queue_offset) == (b"49", 49)
        assert await consumer.poll(timeout=0.1) == ()


async def popped_messages_come_again_until_acknowledged(names: str, word: str) -> None:
    async with Producer(names) as producer:
        await producer.send(Message(topic=word, body=b"one"))
        await producer.send(Message(topic=word, body=b"two", tags="blue"))
    group = f"{word}-group"
    async with SimpleConsumer(names, group, word, is_from_first=True, invisible=8) as consumer:
        found: dict[bytes, PoppedMessage] = {}
        async with asyncio.timeout(PATIENCE):
            while len(found) < 2:
                found |= {message.body: message for message in await consumer.receive(wait=1)}
        await consumer.ack(found[b"one"])
        await consumer.change_invisible(found[b"two"], 1)
        async with asyncio.timeout(PATIENCE):
            while not (again := await consumer.receive(wait=2)):
                pass
        (message,) = again
        assert (message.body, message.topic, message.reconsume_times) == (b"two", word, 1)
        await consumer.ack(message)
        assert not await consumer.receive(wait=12)


async def set_mode(names: str, topic: str, group: str, mode: str) -> None:
    """Do what `mqadmin setConsumeMode` does."""
    body = encode_body(RequestMode(topic, group, mode))
    async with Cluster(names) as cluster:
        for broker in await cluster.brokers_of(topic):
            code = RequestCode.SET_MESSAGE_REQUEST_MODE
            await cluster.ask(broker.address, code, body=body)


def is_popping(consumer: Consumer) -> bool:
    """Whether a consumer pops queues."""
    return any(queue.queue_id == ALL_QUEUES for queue in consumer.queues)


async def brokers_say_who_pops_what(names: str, word: str) -> None:
    group, seen = f"{word}-group", Counter[bytes]()
    settings = ConsumerSettings(
        consume_from="first", client_rebalance=False, handover=0.1, rebalance_interval=0.5
    )

    async def handle(message: ConsumedMessage) -> None:
        seen[message.body] += 1
        assert message.topic == word
        if message.body == b"again" and seen[message.body] == 1:
            raise ValueError

    async with Producer(names) as producer:
        await producer.send(Message(topic=word, body=b"pulled"))
        first = Consumer(names, group, word, settings=settings, instance=f"{word}-1")
        second = Consumer(names, group, word, settings=settings, instance=f"{word}-2")
        async with first, second:
            running = [
                asyncio.create_task(consumer.run(handle, concurrency=4))
                for consumer in (first, second)
            ]
            await until(lambda: seen[b"pulled"] > 0)
            assert not is_popping(first)
            await set_mode(names, word, group, "POP")
            await until(lambda: is_popping(first) and is_popping(second))
            wanted = {b"again", *(b"%d" % number for number in range(20))}
            for body in sorted(wanted):
                await producer.send(Message(topic=word, body=body))
            await until(lambda: wanted <= seen.keys())
            assert all(seen[body] == 1 for body in wanted), seen
            # What was popped and failed is read by whoever pulls.
            await set_mode(names, word, group, "PULL")
            await until(lambda: not is_popping(first) and not is_popping(second))
            await producer.send(Message(topic=word, body=b"pulled, too"))
            await until(lambda: seen[b"pulled, too"] > 0 and seen[b"again"] > 1)
        await asyncio.gather(*running)


async def brokers_that_assign_queues_are_asked(names: str, word: str) -> None:
    settings = ConsumerSettings(consume_from="first", client_rebalance=False, handover=0.1)
    async with Producer(names) as producer:
        await producer.send(Message(topic=word, body=b"one"))
    async with Consumer(names, f"{word}-group", word, settings=settings) as consumer:
        (message,) = await collect(consumer, 1)
        assert message.body == b"one"


async def namespaces_keep_names_apart(names: str, word: str) -> None:
    space, group, again = f"{word}-space", f"{word}-group", asyncio.Event()
    settings = ConsumerSettings(consume_from="first", handover=0.1, max_retries=3)
    async with Producer(names, group=group, namespace=space) as producer:
        first = await producer.send(Message(topic=word, body=b"first"))
        assert first.queue.topic == word
        assert set(await producer.queues(word)) >= {first.queue}
        sent = await producer.send(Message(topic=word, body=b"second"), queue=first.queue)
        assert sent.queue == first.queue
        await producer.send_many([Message(topic=word, body=b"third")])
    async with Consumer(names, group, word, settings=settings, namespace=space) as consumer:
        found = await collect(consumer, 3)
        assert {message.topic for message in found} == {word}
        assert {queue.topic for queue in consumer.queues} >= {f"{space}%{word}"}

        async with Producer(names, namespace=space) as producer:
            await producer.send(Message(topic=word, body=b"again"))
        times: list[tuple[str, str, int]] = []

        async def handle(message: ConsumedMessage) -> None:
            times.append((message.topic, message.queue.topic, message.reconsume_times))
            if len(times) == 1:
                await message.retry_later(1)
            else:
                again.set()

        task = asyncio.create_task(consumer.run(handle))
        async with asyncio.timeout(PATIENCE):
            await again.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert times == [
        (word, f"{space}%{word}", 0),
        (word, f"%RETRY%{space}%{group}", 1),
    ]
    async with Consumer(names, f"{group}-outside", f"{space}%{word}", settings=FIRST) as outside:
        assert {message.body for message in await collect(outside, 4)} == {
            *(b"first", b"second", b"third", b"again")
        }
    async with PullConsumer(names, namespace=space) as reader:
        reader.assign(await reader.queues_of(word))
        for queue in await reader.queues_of(word):
            await reader.seek(queue, 0)
        async with asyncio.timeout(PATIENCE):
            while not (messages := await reader.poll()):
                pass
        assert {message.topic for message in messages} == {word}


async def _traces(names: str, group: str, topic: str, count: int) -> list[list[str]]:
    """Return the fields of the first records of a topic of traces, found by their keys."""
    records: list[list[str]] = []
    async with Consumer(names, group, topic, settings=FIRST) as consumer:
        async with asyncio.timeout(PATIENCE):
            while len(records) < count:
                message = await consumer.receive()
                assert message is not None
                found = [text.split("\x01") for text in message.body.decode().split("\x02")[:-1]]
                assert {each[2 if each[0] == "SubAfter" else 5] for each in found} <= {
                    *message.keys
                }
                records += found
                await message.ack()
    return records


async def messages_are_traced(names: str, word: str) -> None:
    traces, group = f"{word}-traces", f"{word}-group"

    async def check(half: ReceivedMessage) -> TransactionState:
        return TransactionState.UNKNOWN

    settings = ConsumerSettings(consume_from="first", handover=0.1, trace=traces)
    async with Producer(names, group=f"{word}-producers", check=check, trace=traces) as producer:
        first = await producer.send(Message(topic=word, body=b"1", tags="t", keys=["a", "b"]))
        transaction = await producer.transaction(Message(topic=word, body=b"2"))
        await transaction.commit()
        async with Consumer(names, group, word, settings=settings) as consumer:
            await collect(consumer, 2)
            # Whoever is closed sends the rest of its traces for three seconds at most.
            records = await _traces(names, f"{word}-reader", traces, count=7)
    by_kind = Counter(record[0] for record in records)
    assert by_kind == {"Pub": 2, "EndTransaction": 1, "SubBefore": 2, "SubAfter": 2}
    (sent,) = (
        record for record in records if record[:1] + record[5:6] == ["Pub", first.message_id]
    )
    assert sent[2:5] + sent[6:8] == ["DefaultRegion", f"{word}-producers", word, "t", "a b"]
    assert sent[9::3][:2] == ["1", first.offset_message_id]
    assert sent[-1] == "true"
    (ended,) = (record for record in records if record[0] == "EndTransaction")
    assert ended[5] == transaction.result.message_id
    assert ended[-2:] == ["COMMIT_MESSAGE", "false"]
    begun = {record[4]: record[5] for record in records if record[0] == "SubBefore"}
    done = {record[1]: record[2] for record in records if record[0] == "SubAfter"}
    assert begun == done
    assert {*begun.values()} == {first.message_id, transaction.result.message_id}


CASES: Sequence[Case] = (
    every_field_arrives,
    batches_arrive_in_order,
    compressed_bodies_are_read,
    arrow_batches_bring_every_field,
    sharding_keys_keep_their_order,
    what_fails_in_order_comes_again_in_its_place,
    what_fails_comes_again_by_the_retry_topic,
    what_is_held_too_long_comes_again,
    what_fails_too_often_is_dead,
    a_group_goes_on_where_it_was,
    two_members_share_the_queues,
    broadcasting_members_get_everything,
    delayed_messages_come_late,
    transactions_are_committed_or_dropped,
    a_request_is_replied_to,
    replies_arrive_after_another_producer_has_left,
    an_offset_can_be_sought,
    a_listener_may_seek_and_commit,
    broadcasting_members_seek_backwards,
    a_message_that_is_too_long_is_refused,
    chosen_queues_are_polled,
    messages_are_traced,
    namespaces_keep_names_apart,
    brokers_that_assign_queues_are_asked,
)
"""What brokers of RocketMQ 4.9 can do, too."""

POP_CASES: Sequence[Case] = (
    popped_messages_come_again_until_acknowledged,
    brokers_say_who_pops_what,
)


class Outcomes(NamedTuple):
    """What became of cases that ran side by side.

    Attributes:
        failures: the exception of each case that failed.
        tasks_left: tasks that were still there when all cases were over.
    """

    failures: Mapping[Case, BaseException]
    tasks_left: Sequence[str]


def run(cases: Sequence[Case], names: str) -> Outcomes:
    """Run cases on one event loop, whose producers and consumers share their connections."""
    with patience():
        return asyncio.run(_run(cases, names))


async def _run(cases: Sequence[Case], names: str) -> Outcomes:
    before = asyncio.all_tasks()
    running = (case(names, case.__name__.replace("_", "-")) for case in cases)
    ended = await asyncio.gather(*running, return_exceptions=True)
    left = [str(task) for task in await tasks_left(before)]
    pairs = zip(cases, ended, strict=True)
    return Outcomes(
        {case: error for case, error in pairs if isinstance(error, BaseException)}, left
    )
