"""Answer changes of topics and groups once they are durable (upstream: `ConfigManager`)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import StoreError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.route import Answer
from mqlake.store.port import DurableTable


async def once_kept(
    state: BrokerState, table: DurableTable, answer: Answer | Coroutine[Any, Any, Answer]
) -> Answer:
    """Return an answer once a table, with the changes that led to the answer, is durable.

    Raises:
        RemotingError: the disk refused the change.
    """
    found = await answer if isinstance(answer, Coroutine) else answer
    try:
        await state.store.keeping.keep(table)
    except StoreError as error:
        raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return found


async def once_ended(state: BrokerState) -> None:
    """Return once no crash can bring back anything of deleted topics and groups.

    Raises:
        RemotingError: the disk refused a table.
    """
    try:
        await state.endings.kept()
    except StoreError as error:
        raise RemotingError(ResponseCode.SYSTEM_ERROR, str(error)) from None
