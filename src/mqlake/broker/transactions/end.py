"""END_TRANSACTION (upstream: `EndTransactionProcessor`)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.answers import STORED, refusal
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.transactions.check_back import CheckBacks
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.transactions import EndTransactionHeader
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.store.append.put_result import PutResult
from mqlake.store.port import EndStatus

_ERROR = ResponseCode.SYSTEM_ERROR
_REFUSED = {
    EndStatus.NOT_FOUND: (_ERROR, "Find prepared transaction message failed"),
    EndStatus.WRONG_GROUP: (_ERROR, "The producer group wrong"),
    EndStatus.WRONG_OFFSET: (_ERROR, "The transaction state table offset wrong"),
    EndStatus.TOPIC_DELETED: (
        ResponseCode.TOPIC_NOT_EXIST,
        "the topic was deleted after the message was sent: the message is dropped",
    ),
    EndStatus.TOO_LATE: (
        ResponseCode.ILLEGAL_OPERATION,
        "CHECK_IMMUNITY_TIME_IN_SECONDS is over: only an answer to a check ends the transaction",
    ),
}


class EndTransactions:
    """Commits and rolls back half messages."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._store = state.store
        state.store.transactions.ask_with(CheckBacks(state, runtime).ask)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (Route(RequestCode.END_TRANSACTION, self._end, Permission.PUBLISH),)

    async def _end(self, _peer: Peer, request: Command) -> Command:
        header = request.header(EndTransactionHeader)
        wanted = header.commit_or_rollback
        if wanted == TRANSACTION_NONE:
            # The producer does not know yet: the next check asks it again.
            return response(request)
        if wanted not in (TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
            raise RemotingError(_ERROR, f"commitOrRollback field wrong: {wanted}")
        ended = self._store.appends.end(
            header.commit_log_offset,
            header.tran_state_table_offset,
            header.producer_group,
            commit=wanted == TRANSACTION_COMMIT,
            is_answer=bool(header.from_transaction_check),
        )
        if ended.status in _REFUSED:
            raise RemotingError(*_REFUSED[ended.status])
        if ended.put is not None:
            await self._check(ended.put)
        return response(request)

    async def _check(self, put: PutResult) -> None:
        """Return once a committed message is durable; one that is only late counts."""
        if put.is_ok:
            (put,) = await self._store.appends.confirm([put])
        if not put.is_ok and put.status not in STORED:
            raise refusal(put)
