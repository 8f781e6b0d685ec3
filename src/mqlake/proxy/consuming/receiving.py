"""ReceiveMessage (upstream: `ReceiveMessageActivity`, `ReceiveMessageResponseStreamWriter`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    ClientType,
    Code,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
)
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from mqlake.proxy.consuming.filters import selected_topic
from mqlake.proxy.consuming.outgoing import converted, timestamp_of
from mqlake.proxy.consuming.pops import PoppedDelivery, Pops, Wish
from mqlake.proxy.consuming.renewer import Renewer
from mqlake.proxy.consuming.times import invisible_time, poll_time
from mqlake.proxy.consuming.waiting_polls import WaitingPolls
from mqlake.proxy.errors import OK, CallStatus, StatusError, outcome_of_error
from mqlake.proxy.names import group_of, topic_of
from mqlake.proxy.state import ProxyState

_LITE: Final = frozenset((ClientType.LITE_PUSH_CONSUMER, ClientType.LITE_SIMPLE_CONSUMER))


class _Received(NamedTuple):
    popped: list[PoppedDelivery]
    outcome: CallStatus


class Receiving:
    """Serves calls that receive messages."""

    def __init__(
        self, state: ProxyState, pops: Pops, renewer: Renewer, waiting: WaitingPolls
    ) -> None:
        self._state, self._pops, self._renewer, self._waiting = state, pops, renewer, waiting

    async def receive(
        self, call: Call, caller: Caller, request: ReceiveMessageRequest
    ) -> AsyncIterator[ReceiveMessageResponse]:
        """Yield a status, the messages, and the time at which they were sent.

        If the call ends before, all its messages become visible again soon: clients use the
        messages of complete calls only. Upstream returns those that it could not send.
        """
        try:
            popped, outcome = await self._received(call, caller, request)
        except Exception as error:  # noqa: BLE001 (whatever is raised is the answer)
            popped, outcome = [], outcome_of_error(error, f"{call.peer}: ReceiveMessage")
        is_complete = False
        try:
            yield ReceiveMessageResponse(status=outcome.status)
            for each in popped:
                found, delivery = each
                now, topic = self._state.now(), delivery.topic
                message = await converted(found, delivery.handle, now, topic)
                yield ReceiveMessageResponse(message=message)
            yield ReceiveMessageResponse(delivery_timestamp=timestamp_of(self._state.now()))
            is_complete = True
        finally:
            if popped and not is_complete:
                self._give_back(popped)
            elif popped:
                call.on_cancel(lambda: self._give_back(popped))

    def _give_back(self, popped: list[PoppedDelivery]) -> None:
        work = self._renewer.give_back_all([each.delivery for each in popped])
        self._state.background.start(work, "the return of messages of a lost call")

    async def _received(
        self, call: Call, caller: Caller, request: ReceiveMessageRequest
    ) -> _Received:
        try:
            client = await self._state.clients.arriving(caller.client_id)
        except StatusError as error:
            # Upstream's code: clients send their settings again by themselves.
            raise StatusError(Code.INTERNAL_SERVER_ERROR, error.message) from None
        self._state.clients.check_user(caller, client)
        group = await self._state.brokers.group(group_of(request.group), caller)
        wish = self._wish(call, caller, client, request, group or SubscriptionGroup())
        is_renewed = request.auto_renew
        most = wish.most if is_renewed else 0
        with self._waiting.one_more(caller), self._renewer.reserved(caller, most):
            popped, why_none = await self._pops.pop(wish)
        if not popped:
            return _Received([], CallStatus(Code.MESSAGE_NOT_FOUND, why_none))
        if is_renewed:
            if not self._is_connected(caller):
                deliveries = [each.delivery for each in popped]
                work = self._renewer.give_back_all(deliveries)
                self._state.background.start(work, "the return of messages of a lost client")
                reason = f"The client [{caller.client_id[:255]}] is disconnected."
                return _Received([], CallStatus(Code.MESSAGE_NOT_FOUND, reason))
            for message, delivery in popped:
                self._renewer.add(delivery, message.reconsume_times)
        return _Received(popped, OK)

    def _is_connected(self, caller: Caller) -> bool:
        client = self._state.clients.get(caller.client_id)
        return client is not None and client.stream is not None

    def _wish(
        self,
        call: Call,
        caller: Caller,
        client: GrpcClient,
        request: ReceiveMessageRequest,
        group: SubscriptionGroup,
    ) -> Wish:
        settings = self._state.settings
        waits = poll_time(settings, client.settings, call, request)
        topic = topic_of(request.message_queue.topic)
        invisible = invisible_time(settings, request)
        most = settings.grpc_client_consumer_long_polling_batch_size
        return Wish(
            caller=caller,
            group=group_of(request.group),
            topic=selected_topic(topic, request.filter_expression),
            broker=request.message_queue.broker.name,
            most=min(request.batch_size, most) if request.batch_size > 0 else most,
            invisible=invisible,
            poll_time=waits,
            is_ordered=group.consume_message_orderly,
            attempt_id=request.attempt_id if request.HasField("attempt_id") else None,
            max_attempts=group.retry_max_times + 1,
            is_lite=client.settings.client_type in _LITE,
        )
