"""Messages that are sent in two steps (upstream: `DefaultMQProducerImpl.sendMessageInTransaction`).

A half message is stored where nobody reads it, until its producer commits it or rolls it back. If
it does neither, the broker asks a producer of the group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from types import TracebackType
from typing import Self

from mqlake.client.instance import ClientInstance
from mqlake.client.message import Message, ReceivedMessage
from mqlake.client.producer.result import SendResult
from mqlake.client.producer.send_trace import SendTrace
from mqlake.errors import MqlakeError
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.transactions import CheckTransactionHeader, EndTransactionHeader
from mqlake.protocol.namespace import Namespace
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

_TIMEOUT = 3.0

_log = logging.getLogger(__name__)


class TransactionState(Enum):
    """How a transaction ended."""

    COMMIT = TRANSACTION_COMMIT
    ROLLBACK = TRANSACTION_ROLLBACK
    UNKNOWN = TRANSACTION_NONE


_TRACED = {
    TransactionState.COMMIT: "COMMIT_MESSAGE",
    TransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
    TransactionState.UNKNOWN: "UNKNOW",
}
"""The names of the states in traces: upstream's names."""

Check = Callable[[ReceivedMessage], Awaitable[TransactionState]]
"""Tells how a transaction ended; UNKNOWN lets the broker ask again later."""


class Transaction:
    """A half message: committed at the end of an `async with` block, rolled back if the block
    raises.

    Attributes:
        result: where the half message is stored; its `message_id` is that of the message.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        message: Message,
        result: SendResult,
        trace: SendTrace | None = None,
    ) -> None:
        self._instance, self._group, self._message = instance, group, message
        self._trace = trace
        self.result = result
        self._is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_over:
            return
        if kind is None:
            await self.commit()
            return
        try:
            await self.rollback()
        except MqlakeError as refusal:  # The block's own error is the one to raise.
            _log.warning("a transaction was not rolled back: %s", refusal)

    async def commit(self) -> None:
        """Let consumers have the message."""
        await self._end(TransactionState.COMMIT)

    async def rollback(self) -> None:
        """Drop the message."""
        await self._end(TransactionState.ROLLBACK)

    async def _end(self, state: TransactionState) -> None:
        """Report the end to the broker. If the broker does not receive it, the broker asks
        (`Check`), and nothing is lost.

        Raises:
            RemotingError: the broker refuses, for example because the half message has expired.
        """
        self._is_over = True
        result = self.result
        _, physical_offset = decode_message_id(result.offset_message_id)
        header = EndTransactionHeader(
            producer_group=self._group,
            tran_state_table_offset=result.queue_offset,
            commit_log_offset=physical_offset,
            commit_or_rollback=state.value,
            topic=self._message.topic,
            from_transaction_check=False,
            msg_id=result.message_id,
            transaction_id=result.transaction_id,
        )
        address = self._instance.routes.master_of(result.queue) or ""
        try:
            await self._instance.cluster.ask(
                address, RequestCode.END_TRANSACTION, header, seconds=_TIMEOUT
            )
        except (ConnectionFailedError, RequestTimeoutError) as error:
            _log.warning("a transaction was not ended; the broker will ask again: %s", error)
        if self._trace is not None:
            self._trace.ended(self._message, result, _TRACED[state])


class Checks:
    """Answers brokers that ask for half messages of a group."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        namespace: Namespace,
        check: Check | None,
        trace: SendTrace | None = None,
    ) -> None:
        self._instance, self._group, self._check = instance, group, check
        self._namespace = namespace
        self._trace = trace
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, half: ReceivedMessage, header: CheckTransactionHeader, address: str) -> None:
        """Find out how a transaction ended, and report it to the broker at an address."""
        if self._check is None:
            _log.warning(
                "%s asks for a transaction of group %s, but its producer has no check",
                address,
                self._group,
            )
            return
        task = asyncio.get_running_loop().create_task(
            self._answer(self._check, half, header, address)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel the checks that are running: brokers ask again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(
        self, check: Check, half: ReceivedMessage, asked: CheckTransactionHeader, address: str
    ) -> None:
        state, topic = TransactionState.UNKNOWN, half.topic
        half.topic = self._namespace.unwrap(topic)
        try:
            state = TransactionState(await check(half))
        except Exception:  # noqa: BLE001 (it is the user's)
            _log.exception(
                "the check of message %s failed; the broker will ask again", half.message_id
            )
        header = EndTransactionHeader(
            producer_group=self._group,
            tran_state_table_offset=asked.tran_state_table_offset,
            commit_log_offset=asked.commit_log_offset,
            commit_or_rollback=state.value,
            topic=topic,
            from_transaction_check=True,
            msg_id=half.message_id,
            transaction_id=asked.transaction_id,
        )
        try:
            command = request(RequestCode.END_TRANSACTION, header)
            await self._instance.cluster.client.oneway(address, command)
        except MqlakeError as error:
            _log.warning(
                "%s was not notified about message %s: %s", address, half.message_id, error
            )
        if self._trace is not None:
            self._trace.checked(half, asked.transaction_id, _TRACED[state])
