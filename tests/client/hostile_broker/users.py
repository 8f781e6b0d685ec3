"""Programs that use every method of the client, whatever is answered."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    PullConsumer,
    ReceivedMessage,
    SimpleConsumer,
    TransactionState,
)
from mqlake.errors import MqlakeError

T = TypeVar("T")

NAMES = "127.0.0.1:9876"
TOPIC = "t"
_INSTANCE = "hostile"
"""A client id that is the same in each run."""
LONGEST = 300.0
"""Virtual seconds in which every call returns."""


class HandlerError(Exception):
    """A handler of these tests fails."""


class Users:
    """A producer and three kinds of consumers, and what goes wrong with them.

    Attributes:
        is_failing: whether handlers fail now and then.
        received: messages that the consumer has received as they were sent.
        calls: how many calls were made.
        violations: one line each.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.is_failing = True
        self.received = self.calls = 0
        self.violations: list[str] = []
        self._producer = Producer(
            NAMES, group="producers", check=self._check, instance=_INSTANCE, timeout=3.0
        )
        self._puller = PullConsumer(NAMES, "pullers", instance=_INSTANCE)
        self._popper = SimpleConsumer(NAMES, "poppers", TOPIC, instance=_INSTANCE)
        settings = ConsumerSettings(consume_from="first", in_order=dice.random() < 0.5)
        self._consumer = Consumer(NAMES, "group", TOPIC, settings=settings, instance=_INSTANCE)

    async def start(self) -> None:
        """Start all clients, however long it takes."""
        await self._producer.start()
        self._puller.start()
        await self._popper.__aenter__()
        while (await self.call("start", self._consumer.start()))[0]:  # noqa: ASYNC110
            await asyncio.sleep(1)
        self._working = asyncio.create_task(self._consumer.run(self._handle, concurrency=3))

    async def work(self, is_over: Callable[[], bool]) -> None:
        """Use the clients until something holds."""
        users = self._send, self._transact, self._ask, self._pull, self._pop, self._manage
        await asyncio.gather(*(self._repeat(user, is_over) for user in users))

    async def recover(self, add_message: Callable[[], None]) -> None:
        """Use the clients, now that all answers are good: each must succeed soon.

        Args:
            add_message: adds a message to each queue.
        """
        self.is_failing, self.received = False, 0
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LONGEST
        todo: dict[str, Callable[[], Awaitable[object]]] = {
            "send": lambda: self._producer.send(Message(topic=TOPIC, body=b"x")),
            "poll": lambda: self._poll_good(add_message),
            "pop": lambda: self._popper.receive(wait=1),
        }
        while todo or not self.received:
            add_message()
            for name, attempt in list(todo.items()):
                error, found = await self.call(name, attempt())
                if error is None and found:
                    del todo[name]
            await asyncio.sleep(1)
            if loop.time() > deadline:
                left = [*todo, *(["receive"] if not self.received else [])]
                self.violations.append(f"good answers did not help: {', '.join(left)}")
                return

    async def close(self) -> None:
        """Close all clients."""
        for client in (self._consumer, self._producer, self._puller, self._popper):
            await self.call("close", client.close())
        await self.call("run", self._working)

    async def call(self, name: str, work: Awaitable[T]) -> tuple[MqlakeError | None, T | None]:
        """Return what a call raises that it may raise, and what it returns."""
        self.calls += 1
        try:
            async with asyncio.timeout(LONGEST) as limit:
                return None, await work
        except MqlakeError as error:
            return error, None
        except Exception as error:  # noqa: BLE001 (it is what we look for)
            if limit.expired():
                self.violations.append(f"{name} does not return")
            else:
                text = "".join(traceback.format_exception(error)[-6:])
                self.violations.append(f"{name}: {type(error).__name__}: {error}\n{text}")
            return None, None

    # What they do

    async def _repeat(
        self, user: Callable[[], Awaitable[None]], is_over: Callable[[], bool]
    ) -> None:
        while not is_over():
            await user()
            await asyncio.sleep(self._dice.uniform(0, 2))

    async def _send(self) -> None:
        producer, one = self._producer, Message(topic=TOPIC, body=b"x")
        keyed = Message(topic=TOPIC, body=b"x" * 5000, sharding_key="key")
        attempts: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: producer.send(one),
            lambda: producer.send(keyed, timeout=0.5),
            lambda: producer.send_batch([one, one]),
            lambda: producer.send_many([one, keyed, one]),
            lambda: producer.send_oneway(one),
            lambda: producer.queues(TOPIC),
        )
        await self.call("send", self._dice.choice(attempts)())

    async def _transact(self) -> None:
        message = Message(topic=TOPIC, body=b"x")
        _, half = await self.call("transaction", self._producer.transaction(message))
        if half is not None:
            is_kept = self._dice.random() < 0.5
            await self.call("end", half.commit() if is_kept else half.rollback())

    async def _ask(self) -> None:
        question = Message(topic=TOPIC, body=b"x")
        await self.call("request", self._producer.request(question, timeout=1.0))

    async def _pull(self) -> None:
        _, queues = await self.call("queues_of", self._puller.queues_of(TOPIC))
        if not queues:
            return
        few = list(queues[:4])
        queue, puller = self._dice.choice(few), self._puller
        puller.assign(few)
        attempts: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: puller.poll(timeout=1.0),
            lambda: puller.poll(timeout=1.0),
            puller.commit,
            lambda: puller.committed(queue),
            lambda: puller.start_of(queue),
            lambda: puller.end_of(queue),
            lambda: puller.offset_at(queue, 1),
            lambda: puller.seek(queue, self._dice.choice((0, 3, 1 << 40))),
        )
        await self.call("pull", self._dice.choice(attempts)())

    async def _pop(self) -> None:
        _, messages = await self.call("receive", self._popper.receive(wait=1.0))
        for message in (messages or ())[:3]:
            if self._dice.random() < 0.5:
                await self.call("ack", self._popper.ack(message))
            else:
                await self.call("change", self._popper.change_invisible(message, 1.0))

    async def _manage(self) -> None:
        consumer = self._consumer
        if self._dice.random() < 0.5:
            await self.call("commit", consumer.commit())
        elif queues := sorted(consumer.queues, key=str):
            offset = self._dice.choice((0, 1, 5, 1 << 40, (1 << 63) - 1))
            await self.call("seek", consumer.seek(self._dice.choice(queues), offset))

    async def _poll_good(self, add_message: Callable[[], None]) -> Sequence[ReceivedMessage]:
        queues = await self._puller.queues_of(TOPIC)
        self._puller.assign(queues[:4])
        add_message()
        return await self._puller.poll(timeout=2.0)

    async def _handle(self, message: ConsumedMessage) -> None:
        if self.is_failing and self._dice.random() < 0.1:
            raise HandlerError
        if self.is_failing and self._dice.random() < 0.1:
            await message.retry_later(1)
        self.received += message.body == b"good"

    async def _check(self, half: ReceivedMessage) -> TransactionState:
        return self._dice.choice(tuple(TransactionState))
