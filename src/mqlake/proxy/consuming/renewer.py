"""Extends the invisible times of messages while their clients handle them.

Upstream: `DefaultReceiptHandleManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import GroupRetryPolicy
from mqlake.grpc.messages import Code
from mqlake.protocol.errors import RemotingError
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from mqlake.proxy.consuming.deliveries import Deliveries, GroupDelivery
from mqlake.proxy.consuming.renewal import HandleOwner, RenewalTable, RenewedMessage, sharer_of
from mqlake.proxy.errors import StatusError
from mqlake.proxy.retry_delays import retry_delay
from mqlake.proxy.state import ProxyState

PERIOD: Final = 5.0
"""Seconds between two looks for messages that are to be renewed."""
RETURNED: Final = 1000
"""Milliseconds after which messages that a client has not handled are visible again."""

_AT_ONCE: Final = 64
"""Requests to one broker at a time."""
_FINAL: Final = frozenset(
    {
        Code.INVALID_RECEIPT_HANDLE,
        Code.BAD_REQUEST,
        Code.TOPIC_NOT_FOUND,
        Code.CONSUMER_GROUP_NOT_FOUND,
    }
)
"""Codes after which a renewal is not repeated."""

_log: Final = logging.getLogger("mqlake.proxy")


class Renewer:
    """Extends the invisible times of messages until their clients settle them, or are gone."""

    def __init__(self, state: ProxyState, deliveries: Deliveries) -> None:
        self._state, self._deliveries = state, deliveries
        settings = state.settings
        self._table = RenewalTable(settings.max_renewals, settings.max_renewals_per_client)
        self._renewing: dict[RenewedMessage, asyncio.Task[object]] = {}
        self._waiting: dict[str, deque[RenewedMessage]] = {}
        state.clients.on_end(self._client_ended)
        state.background.repeat("the renewal of receipt handles", self._look, PERIOD)

    def __len__(self) -> int:
        return len(self._table)

    @contextmanager
    def reserved(self, caller: Caller, messages: int) -> Generator[None]:
        """Reserve room for so many messages until the block ends, when they can be added.

        Raises:
            StatusError: TOO_MANY_REQUESTS.
        """
        key = sharer_of(caller)
        if messages and not self._table.has_room(key, messages):
            reason = "too many messages of this client are not acknowledged (maxRenewals)"
            raise StatusError(Code.TOO_MANY_REQUESTS, reason)
        self._table.count(key, messages)
        try:
            yield
        finally:
            self._table.count(key, -messages)

    def add(self, delivery: GroupDelivery, reconsume_times: int) -> RenewedMessage:
        """Renew a message from now on."""
        message = RenewedMessage(delivery, reconsume_times=reconsume_times, since=self._state.now())
        self._table.add(message)
        return message

    async def settle(self, delivery: GroupDelivery) -> tuple[GroupDelivery, RenewedMessage | None]:
        """Stop renewing a message, because its client settles it now.

        Args:
            delivery: with the handle that the client has.

        Returns:
            The delivery with the newest handle, and what `forget` needs if the message was renewed.
        """
        owner = HandleOwner(delivery.caller.client_id, delivery.group)
        message = self._table.find(owner, delivery.message_id, delivery.handle.text)
        if message is None:
            return delivery, None
        self._table.release(message)
        task = self._renewing.get(message)
        if task is not None:
            # Its result is the handle that the broker knows the message by.
            await asyncio.wait([task])
        return delivery._replace(handle=message.handle), message

    def forget(self, message: RenewedMessage | None) -> None:
        """Forget a message that was settled."""
        if message is not None:
            self._table.remove(message)

    async def give_back(self, delivery: GroupDelivery, *, is_unseen: bool = False) -> None:
        """Let a message become visible soon, since its client does not handle it. Failures are
        logged: the message then becomes visible when its invisible time is over.

        Args:
            is_unseen: whether nothing of it was sent to a client: it becomes visible at once, and
                the delivery is not counted.
        """
        delivery, message = await self.settle(delivery)
        self.forget(message)
        try:
            invisible = 0 if is_unseen else RETURNED
            await self._deliveries.change_invisible(delivery, invisible, is_suspended=is_unseen)
        except MqlakeError as error:
            _log.debug("message %.255s is visible again later: %s", delivery.message_id, error)

    async def give_back_all(
        self, deliveries: list[GroupDelivery], *, is_unseen: bool = False
    ) -> None:
        """Let messages become visible soon, or at once (`give_back`)."""
        for start in range(0, len(deliveries), _AT_ONCE):
            some = deliveries[start : start + _AT_ONCE]
            work = (self.give_back(delivery, is_unseen=is_unseen) for delivery in some)
            await asyncio.gather(*work)

    def _client_ended(self, client: GrpcClient) -> None:
        found = self._table.take_all(client.client_id)
        if found is not None:
            self._state.background.start(self._return(found), "the return of a client's messages")

    async def _return(self, messages: Iterator[RenewedMessage]) -> None:
        while some := list(islice(messages, _AT_ONCE)):
            running = [self._renewing[each] for each in some if each in self._renewing]
            if running:
                await asyncio.wait(running)
            await self.give_back_all([message.delivery for message in some])

    # Renewals

    async def _look(self) -> None:
        for count, message in enumerate(self._table.take_due(self._state.now())):
            broker = message.handle.receipt.broker_name
            waiting = self._waiting.get(broker)
            if waiting is None:
                waiting = self._waiting[broker] = deque()
                # A broker that does not answer must not hold up the messages of others.
                self._state.background.start(
                    self._renew_all(broker, waiting), "the renewal of messages of one broker"
                )
            waiting.append(message)
            if count % 1000 == 999:
                await asyncio.sleep(0)

    async def _renew_all(self, broker: str, waiting: deque[RenewedMessage]) -> None:
        try:
            while waiting:
                some = list(islice(waiting, _AT_ONCE))
                for _ in some:
                    waiting.popleft()
                await self._renew_some(some)
        finally:
            del self._waiting[broker]
            for message in waiting:  # Nothing is left, unless this has failed.
                self._table.again(message, self._state.now())

    async def _renew_some(self, messages: list[RenewedMessage]) -> None:
        loop = asyncio.get_running_loop()
        for message in messages:
            self._renewing[message] = loop.create_task(self._renew(message))
        try:
            await asyncio.wait([self._renewing[message] for message in messages])
        finally:
            for message in messages:
                task = self._renewing.pop(message)
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    _log.error("message %.255s is not renewed", message.message_id, exc_info=error)
                    self._table.remove(message)

    async def _renew(self, message: RenewedMessage) -> None:
        if message.is_gone or not message.is_kept:
            self._table.again(message, self._state.now())
            return
        is_last = message.is_too_old(self._state.now())
        invisible = await self._last_delay(message) if is_last else message.next_invisible
        try:
            handle = await self._deliveries.change_invisible(message.delivery, invisible)
        except (StatusError, RemotingError) as error:
            is_final = isinstance(error, StatusError) and error.code in _FINAL
            self._failed(message, error, is_final=is_final or is_last)
            return
        except MqlakeError as error:
            self._failed(message, error, is_final=is_last)
            return
        message.renewed(handle)
        if is_last:
            _log.info("message %.255s was handled for too long", message.message_id)
            self._table.release(message)
        else:
            self._table.again(message, self._state.now())

    def _failed(self, message: RenewedMessage, error: MqlakeError, *, is_final: bool) -> None:
        message.failed()
        if is_final or message.is_given_up:
            _log.warning("message %.255s is not renewed any more: %s", message.message_id, error)
            self._table.remove(message)
        else:
            self._table.again(message, self._state.now())

    async def _last_delay(self, message: RenewedMessage) -> int:
        group = await self._state.brokers.group(message.delivery.group, message.delivery.caller)
        policy = GroupRetryPolicy() if group is None else group.group_retry_policy
        return retry_delay(policy, message.reconsume_times)
