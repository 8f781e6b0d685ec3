"""Transactions: half messages that were sent, and EndTransaction.

A client ends a transaction by its id. Brokers need the positions of the half message, which are
kept here for a while after it was sent, and after each check.

Upstream: `EndTransactionActivity`, `AbstractTransactionService`, `TransactionDataManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    EndTransactionRequest,
    EndTransactionResponse,
    TransactionResolution,
    TransactionSource,
)
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request as command
from mqlake.protocol.headers.transactions import EndTransactionHeader
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.errors import OK, StatusError, check
from mqlake.proxy.names import topic_of
from mqlake.proxy.served import ServedMethod
from mqlake.proxy.settings import ProxySettings
from mqlake.proxy.state import ProxyState
from mqlake.remoting.shares import Shares

_BITS: Final = {
    int(TransactionResolution.COMMIT): TRANSACTION_COMMIT,
    int(TransactionResolution.ROLLBACK): TRANSACTION_ROLLBACK,
}
_LONGEST_ID: Final = 1024


class HalfMessage(NamedTuple):
    """A half message as its broker knows it.

    Attributes:
        broker: the name of the broker.
        queue_offset, physical_offset: its positions.
        owner: to whose share of the table it counts.
        until: when it is forgotten, milliseconds.
    """

    broker: str
    queue_offset: int
    physical_offset: int
    owner: str
    until: int


class TransactionKey(NamedTuple):
    """The key by which a half message is found.

    Attributes:
        transaction_id: as its client chose it: others may choose the same.
        client_id: who has sent it, or was asked about it.
    """

    topic: str
    transaction_id: str
    client_id: str


class OpenTransactions:
    """The half messages whose transactions may be ended now."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        # In the order of their ends.
        self._known: dict[TransactionKey, HalfMessage] = {}
        self._shares = Shares(lambda: settings.max_address_share)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: TransactionKey, now: int) -> HalfMessage | None:
        """Return a half message; None if it is not known, or not any more."""
        found = self._known.get(key)
        return found if found is not None and found.until > now else None

    def put(
        self, key: TransactionKey, positions: tuple[str, int, int], owner: str, now: int
    ) -> None:
        """Note a half message that was sent, or that its broker asks about.

        Without room, it is not noted: its broker asks about it later.

        Args:
            positions: the name of the broker, the queue offset and the physical offset.
            owner: to whose share it counts.
        """
        self.remove(key)
        self._expire(now)
        most = self._settings.transaction_data_max_num
        name = "transactionDataMaxNum"
        if self._shares.refusal(owner, len(self._known), most, name) is not None:
            return
        until = now + self._settings.transaction_data_expire_millis
        self._known[key] = HalfMessage(*positions, owner, until)
        self._shares.add(owner)

    def remove(self, key: TransactionKey) -> None:
        """Forget a half message."""
        found = self._known.pop(key, None)
        if found is not None:
            self._shares.add(found.owner, -1)

    def _expire(self, now: int) -> None:
        while self._known:
            key = next(iter(self._known))
            if self._known[key].until > now:
                return
            self.remove(key)


class EndTransactionCalls:
    """Commits and rolls back."""

    def __init__(self, state: ProxyState, transactions: OpenTransactions) -> None:
        self._state, self._transactions = state, transactions

    def calls(self) -> Sequence[ServedMethod]:
        """Return the handler of each method."""
        return (ServedMethod("EndTransaction", self._end),)

    async def _end(
        self, call: Call, caller: Caller, request: EndTransactionRequest
    ) -> EndTransactionResponse:
        topic, transaction_id = topic_of(request.topic), request.transaction_id
        if not transaction_id.strip() or len(transaction_id) > _LONGEST_ID:
            raise StatusError(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
        key = TransactionKey(topic, transaction_id, caller.client_id)
        half = self._transactions.get(key, self._state.now())
        if half is None:
            reason = f"cannot found transaction data of {transaction_id[:255]}"
            raise StatusError(Code.INTERNAL_SERVER_ERROR, reason)
        header = EndTransactionHeader(
            producer_group=topic,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.physical_offset,
            commit_or_rollback=_BITS.get(request.resolution, TRANSACTION_NONE),
            topic=topic,
            from_transaction_check=request.source == TransactionSource.SOURCE_SERVER_CHECK,
            msg_id=request.message_id[:_LONGEST_ID],
            transaction_id=transaction_id,
        )
        asked = command(RequestCode.END_TRANSACTION, header)
        seconds = self._state.patience(call)
        check(await self._state.brokers.request(half.broker, asked, caller, seconds))
        # Who answers a check that the result is not known yet may end the transaction later.
        if request.resolution in _BITS:
            self._transactions.remove(key)
        return EndTransactionResponse(status=OK.status)
