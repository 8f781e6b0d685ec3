"""Send a message until a broker has stored it, or its time is over.

Upstream: `DefaultMQProducerImpl.sendDefaultImpl`, `MQClientAPIImpl.processSendResponse`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from mqlake.client.errors import (
    NoRouteError,
    NotStoredError,
    PerhapsStoredError,
    RefusedError,
)
from mqlake.client.instance import ClientInstance
from mqlake.client.producer.outgoing import Outgoing
from mqlake.client.producer.queue_choice import FAILED, QueueChoice
from mqlake.client.producer.result import SendResult, SendResults, SendStatus
from mqlake.client.producer.send_frames import SendFrames, SendRequest
from mqlake.client.producer.statistics import SendStatistics
from mqlake.client.trace.records import DEFAULT_REGION
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_STATUS: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}
_PASSING = frozenset(
    (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    )
)
"""Response codes after which another broker, or the same one later, may accept the message."""


class Tries(msgspec.Struct, frozen=True):
    """How a message is retried.

    Attributes:
        retries: how many times after the first try.
        other_if_not_ok: also retry if a broker has stored the message but reports that it is not
            yet as durable as it should be. The message is then stored twice.
    """

    retries: int = 2
    other_if_not_ok: bool = False


class _SendOutcome:
    """The results of all tries of a send.

    Attributes:
        tries: how many times the message was sent.
        stored: the results of the last try that a broker acknowledged.
    """

    __slots__ = ("_failure", "_perhaps", "stored", "tries")

    def __init__(self) -> None:
        self.tries = 0
        self.stored: Sequence[SendResult] | None = None
        self._failure: NoRouteError | NotStoredError | PerhapsStoredError | None = None
        self._perhaps: PerhapsStoredError | None = None

    def failed(self, error: NoRouteError | NotStoredError | PerhapsStoredError) -> bool:
        """Note the failure of a try; return whether another try may succeed."""
        self._failure = error
        if isinstance(error, PerhapsStoredError):
            self._perhaps = error
        if isinstance(error, RefusedError):
            return error.code in _PASSING
        return not isinstance(error, NoRouteError)

    def results(self, topic: str, seconds: float) -> Sequence[SendResult]:
        """Return where the messages are stored.

        Raises:
            PerhapsStoredError: no broker acknowledged them, but one may have stored them.
            NotStoredError, NoRouteError: no broker has stored them.
        """
        if self.stored is not None:
            return self.stored
        error = self._failure or NotStoredError(f"topic {topic}: not sent within {seconds:g} s")
        if self._perhaps is not None and error is not self._perhaps:
            raise PerhapsStoredError(f"{self._perhaps}; then: {error}", self.tries) from error
        if not isinstance(error, NoRouteError):
            error.tries = self.tries
        raise error


class Sending:
    """Sends what is ready, for one producer group."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        choice: QueueChoice,
        tries: Tries,
        statistics: SendStatistics,
    ) -> None:
        self._statistics = statistics
        self._instance, self._group, self._frames = instance, group, SendFrames(group)
        self._choice, self._tries = choice, tries
        self._loop = asyncio.get_running_loop()

    async def send(
        self, outgoing: Outgoing, seconds: float, queue: MessageQueue | None = None
    ) -> Sequence[SendResult]:
        """Return where the messages are stored, one result for each.

        Args:
            seconds: for all tries together.
            queue: the queue that they go to; if None, any queue, on another broker with each try.

        Raises:
            SendError: no broker has acknowledged them.
            NoRouteError: no queue accepts them.
        """
        outcome, broker, left = _SendOutcome(), None, seconds
        deadline = self._loop.time() + seconds
        for _ in range(1 + self._tries.retries):
            if left <= 0:
                break
            try:
                chosen = queue or self._choose_known(outgoing.topic, broker)
                chosen = chosen or await self._choose(outgoing.topic, broker, left)
                broker = chosen.broker_name
                outcome.tries += 1
                outcome.stored = await self._try(outgoing, chosen, left)
            except (NoRouteError, NotStoredError, PerhapsStoredError) as error:
                if not outcome.failed(error):
                    break
            else:
                is_ok = outcome.stored[0].status is SendStatus.SEND_OK
                if is_ok or not self._tries.other_if_not_ok:
                    break
            left = deadline - self._loop.time()
        if outcome.tries > 1:
            self._statistics.retried(outgoing.topic, outcome.tries - 1)
        return outcome.results(outgoing.topic, seconds)

    async def oneway(self, outgoing: Outgoing, queue: MessageQueue | None, seconds: float) -> None:
        """Send without an answer; whether the message arrives is unknown.

        Raises:
            NoRouteError, NotStoredError: it was not sent.
        """
        chosen = queue or self._choose_known(outgoing.topic, None)
        chosen = chosen or await self._choose(outgoing.topic, None, seconds)
        command = outgoing.command(self._group, chosen)
        try:
            address = await self._address(chosen, seconds)
            await self._instance.cluster.client.oneway(address, command)
        except ConnectionFailedError as error:
            raise NotStoredError(str(error)) from error

    def _choose_known(self, topic: str, failed: str | None) -> MessageQueue | None:
        route = self._instance.routes.known(topic)
        return None if route is None else self._choice.next(route, failed)

    async def _choose(self, topic: str, failed: str | None, seconds: float) -> MessageQueue:
        try:
            async with asyncio.timeout(seconds):
                route = await self._instance.routes.to_publish(topic)
        except TimeoutError:
            raise NoRouteError(
                f"topic {topic}: no name server answered within {seconds:g} s"
            ) from None
        return self._choice.next(route, failed)

    async def _address(self, queue: MessageQueue, seconds: float) -> str:
        routes = self._instance.routes
        address = routes.master_of(queue)
        if address is None:
            # The caller chose the queue, and may never have sent to its topic before.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await routes.load(queue.topic)
            address = routes.master_of(queue)
        if address is None:
            raise NotStoredError(f"broker {queue.broker_name} has no master now")
        return address

    async def _try(
        self, outgoing: Outgoing, queue: MessageQueue, seconds: float
    ) -> Sequence[SendResult]:
        begun = self._loop.time()
        address, client = self._instance.routes.master_of(queue), self._instance.cluster.client
        peer = client.connected(address) if address else None
        if peer is None:
            peer = await self._connect(queue, seconds)
            seconds = max(0.0, seconds + begun - self._loop.time())
        try:
            with client.awaiting(peer.address):
                answer = await peer.request(SendRequest(self._frames, outgoing, queue), seconds)
        except (ConnectionFailedError, RequestTimeoutError) as error:
            self._choice.took(queue.broker_name, FAILED)
            raise PerhapsStoredError(str(error)) from error
        self._choice.took(queue.broker_name, self._loop.time() - begun)
        if answer.code == ResponseCode.NOT_LEADER_FOR_QUEUE:
            await self._instance.routes.load(queue.topic)
            raise NotStoredError(answer.remark or f"another broker leads {queue}")
        return _results(outgoing, queue, answer)

    async def _connect(self, queue: MessageQueue, seconds: float) -> Peer:
        deadline = self._loop.time() + seconds
        address = await self._address(queue, seconds)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._instance.cluster.client.connect(address)
        except (ConnectionFailedError, TimeoutError) as error:
            self._choice.took(queue.broker_name, FAILED)
            raise NotStoredError(str(error) or f"{address}: no connection in time") from error


def _results(outgoing: Outgoing, queue: MessageQueue, answer: Command) -> Sequence[SendResult]:
    status = _STATUS.get(answer.code)
    if status is None:
        reason = answer.remark or f"code {answer.code}"
        raise RefusedError(answer.code, f"broker {queue.broker_name}: {reason}")
    try:
        header = answer.header(SendMessageResponseHeader)
    except MqlakeError as error:
        raise PerhapsStoredError(f"broker {queue.broker_name}: {error}") from error
    keys = outgoing.message_ids
    stored_in = queue
    if header.queue_id != queue.queue_id or outgoing.topic != queue.topic:
        stored_in = MessageQueue(outgoing.topic, queue.broker_name, header.queue_id)
    first = SendResult(
        status=status,
        message_id=keys[0],
        offset_message_id=header.msg_id,
        queue=stored_in,
        queue_offset=header.queue_offset,
        transaction_id=header.transaction_id,
        recall_handle=header.recall_handle,
        region=header.region or DEFAULT_REGION,
        is_traced=header.trace_on is not False,
    )
    if len(keys) == 1:
        return (first,)
    offset_ids = header.msg_id.split(",")
    if len(offset_ids) != len(keys):
        offset_ids = [header.msg_id] * len(keys)
    return SendResults(first, keys, offset_ids)
