"""Pop messages from a broker, for one call (upstream: `ConsumerProcessor.popMessage`)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Final, NamedTuple

from mqlake.client.consumer.pop.popped_receipts import with_receipts
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.message import ReceivedMessage
from mqlake.errors import MqlakeError
from mqlake.formats.config.topics import PERM_READ
from mqlake.formats.properties import LITE_TOPIC
from mqlake.grpc.messages import Code
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.lite import PopLiteAnswerHeader, PopLiteHeader
from mqlake.protocol.headers.pop import PopAnswerHeader, PopHeader
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.deliveries import Deliveries, GroupDelivery
from mqlake.proxy.consuming.lite_receipts import with_lite_receipts
from mqlake.proxy.consuming.message_handle import MessageHandle
from mqlake.proxy.consuming.outgoing import decode_stored
from mqlake.proxy.consuming.renewer import Renewer
from mqlake.proxy.errors import StatusError, check
from mqlake.proxy.state import ProxyState

_ALL_QUEUES: Final = -1
_NEWEST: Final = 1
"""Where a group begins that has no offset."""
_LATE: Final = 3.0
"""Seconds after the end of its poll time within which a pop must be answered."""
_NOTHING: Final = frozenset((ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT))
_MASTER: Final = 0

_Settling = Callable[[GroupDelivery], Awaitable[None]]

_log: Final = logging.getLogger("mqlake.proxy")


class Wish(NamedTuple):
    """What a call asks for.

    Attributes:
        broker: the name of the broker; "" for any.
        most: the maximum number of messages.
        invisible, poll_time: milliseconds.
        attempt_id: of a pop in order; the same one again gets the same messages.
        max_attempts: deliveries after which a message is a dead letter.
        is_lite: whether the messages are those of the client's lite topics.
    """

    caller: Caller
    group: str
    topic: SelectedTopic
    broker: str
    most: int
    invisible: int
    poll_time: int
    is_ordered: bool
    attempt_id: str | None
    max_attempts: int
    is_lite: bool = False


class PoppedDelivery(NamedTuple):
    """A message that was popped."""

    message: ReceivedMessage
    delivery: GroupDelivery


class Pops:
    """Pops messages."""

    def __init__(self, state: ProxyState, deliveries: Deliveries, renewer: Renewer) -> None:
        self._state, self._deliveries, self._renewer = state, deliveries, renewer
        self._turns = count()

    async def pop(self, wish: Wish) -> tuple[list[PoppedDelivery], str]:
        """Return messages for the client, and the reason for an empty result.

        Messages that are not for it are settled meanwhile: those with another tag, and those that
        were delivered too often.

        Raises:
            StatusError: the broker refuses.
        """
        broker = await self._broker(wish)
        answer = await self._state.brokers.poll(
            broker,
            lite_pop(wish, self._state.now()) if wish.is_lite else self._request(wish),
            wish.caller,
            wish.poll_time / 1000 + _LATE,
            lambda late: self._give_back(broker, wish, late),
        )
        if answer.code in _NOTHING:
            return [], "no new message"
        if answer.code == ResponseCode.POLLING_FULL:
            raise StatusError(Code.TOO_MANY_REQUESTS, "polling full")
        check(answer)
        found = list(self._popped(broker, wish, answer))
        return [each for each in found if self._is_for_client(wish, each)], "no match message"

    def _request(self, wish: Wish) -> Command:
        header = PopHeader(
            consumer_group=wish.group,
            topic=wish.topic.topic,
            queue_id=_ALL_QUEUES,
            max_msg_nums=wish.most,
            invisible_time=wish.invisible,
            poll_time=wish.poll_time,
            init_mode=_NEWEST,
            born_time=self._state.now(),
            exp_type=wish.topic.expression_type,
            exp=wish.topic.expression,
            order=wish.is_ordered,
            attempt_id=wish.attempt_id,
        )
        return request(RequestCode.POP_MESSAGE, header)

    async def _broker(self, wish: Wish) -> str:
        """Return the broker to pop from."""
        route = await self._state.brokers.route(wish.topic.topic, wish.caller)
        masters = {data.broker_name for data in route.broker_datas if _MASTER in data.broker_addrs}
        names = sorted(
            data.broker_name
            for data in route.queue_datas
            if data.perm & PERM_READ and data.read_queue_nums > 0 and data.broker_name in masters
        )
        if not names:
            raise StatusError(Code.FORBIDDEN, "no readable queue")
        return wish.broker if wish.broker in names else names[next(self._turns) % len(names)]

    def _popped(self, broker: str, wish: Wish, answer: Command) -> Iterator[PoppedDelivery]:
        stored, topic = decode_stored(answer.body, broker), wish.topic.topic
        if wish.is_lite:
            found = with_lite_receipts(answer.header(PopLiteAnswerHeader), stored, broker)
        else:
            header = answer.header(PopAnswerHeader)
            found = with_receipts(header, stored, broker, wish.group)
        for message, receipt in found:
            handle = MessageHandle(receipt, message.physical_offset)
            lite = message.properties.get(LITE_TOPIC) if wish.is_lite else None
            delivery = GroupDelivery(
                wish.caller, wish.group, topic, message.message_id, handle, lite
            )
            yield PoppedDelivery(message, delivery)

    def _is_for_client(self, wish: Wish, popped: PoppedDelivery) -> bool:
        message, delivery = popped
        if not wish.topic.takes(message):  # The hash of another tag is equal.
            work = self._settle(self._deliveries.acknowledge, delivery)
            self._state.background.start(work, "an acknowledgement of a message with another tag")
            return False
        if message.reconsume_times >= wish.max_attempts > 0:
            work = self._settle(self._deliveries.forward_to_dead_letters, delivery)
            self._state.background.start(work, "a dead letter")
            return False
        return True

    def _give_back(self, broker: str, wish: Wish, late: Command) -> None:
        """Return the messages of an answer that came when nobody waited for it any more."""
        if late.code != ResponseCode.SUCCESS:
            return
        found = [popped.delivery for popped in self._popped(broker, wish, late)]
        work = self._renewer.give_back_all(found, is_unseen=True)
        self._state.background.start(work, "the return of messages")

    async def _settle(self, how: _Settling, delivery: GroupDelivery) -> None:
        """Settle a message; if that fails, it is delivered again."""
        try:
            await how(delivery)
        except MqlakeError as error:
            _log.warning("message %.255s comes again: %s", delivery.message_id, error)


def lite_pop(wish: Wish, now: int) -> Command:
    """Return the request for messages of a client's lite topics."""
    header = PopLiteHeader(
        client_id=wish.caller.client_id,
        consumer_group=wish.group,
        topic=wish.topic.topic,
        max_msg_num=wish.most,
        invisible_time=wish.invisible,
        poll_time=wish.poll_time,
        born_time=now,
        attempt_id=wish.attempt_id,
    )
    return request(RequestCode.POP_LITE_MESSAGE, header)
