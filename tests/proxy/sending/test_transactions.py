"""A client ends the transactions of the half messages that it has sent, by their ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlake.grpc.messages import (
    Code,
    EndTransactionRequest,
    MessageType,
    TransactionResolution,
    TransactionSource,
)
from mqlake.proxy.sending.transactions import OpenTransactions, TransactionKey
from mqlake.proxy.settings import ProxySettings
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.proxy.sending.messages import ID, message, send
from tests.proxy.serving import Calls, named, serving

COMMIT, ROLLBACK = TransactionResolution.COMMIT, TransactionResolution.ROLLBACK


async def half(calls: Calls, number: int = 0) -> str:
    """Send a half message; return its transaction id."""
    sent = message("X", message_type=MessageType.TRANSACTION, message_id=f"{ID}{number}")
    found = await calls.ask("SendMessage", send(sent))
    assert found.status.code == Code.OK, found.status.message
    transaction_id: str = found.entries[0].transaction_id
    assert transaction_id == f"{ID}{number}"
    return transaction_id


async def end(calls: Calls, transaction_id: str, resolution: int = COMMIT, **more: Any) -> int:
    request = EndTransactionRequest(
        topic=named("X"),
        message_id=ID,
        transaction_id=transaction_id,
        resolution=resolution,
        source=TransactionSource.SOURCE_CLIENT,
    )
    return int((await calls.ask("EndTransaction", request, **more)).status.code)


def test_committed_messages_are_delivered_and_others_are_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            first, second = await half(calls, 1), await half(calls, 2)
            assert not calls.broker.records("X")
            assert await end(calls, second, ROLLBACK) == Code.OK
            assert await end(calls, first) == Code.OK
            (record,) = calls.broker.records("X")
            assert record.properties["UNIQ_KEY"] == first

    simulated.run(run())


def test_a_transaction_that_is_not_known_cannot_be_ended(tmp_path: Path) -> None:
    async def run() -> None:
        clock = AdvancedClock()
        async with serving(tmp_path, clock=clock) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            assert await end(calls, "") == Code.INVALID_TRANSACTION_ID
            assert await end(calls, "unknown") == Code.INTERNAL_SERVER_ERROR
            known = await half(calls)
            assert await end(calls, known) == Code.OK
            assert await end(calls, known) == Code.INTERNAL_SERVER_ERROR
            known = await half(calls)
            clock.advance(121)
            assert await end(calls, known) == Code.INTERNAL_SERVER_ERROR

    simulated.run(run())


def test_an_unknown_result_leaves_the_transaction_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            known = await half(calls)
            assert await end(calls, known, 0) == Code.OK
            assert not calls.broker.records("X")
            assert await end(calls, known) == Code.OK
            assert len(calls.broker.records("X")) == 1

    simulated.run(run())


def test_a_transaction_is_ended_by_the_client_that_sent_it(tmp_path: Path) -> None:
    """Another client may choose the same id."""

    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            for client_id in ("first", "second"):
                sent = message(
                    "X", client_id.encode(), message_type=MessageType.TRANSACTION, message_id=ID
                )
                await calls.ask("SendMessage", send(sent), client_id)
            assert await end(calls, ID, client_id="stranger") == Code.INTERNAL_SERVER_ERROR
            assert await end(calls, ID, client_id="first") == Code.OK
            assert [record.body for record in calls.broker.records("X")] == [b"first"]

    simulated.run(run())


def test_the_table_has_a_limit_and_shares_and_forgets() -> None:
    table = OpenTransactions(ProxySettings(transaction_data_max_num=4, max_address_share=50))

    def key(transaction_id: str) -> TransactionKey:
        return TransactionKey("X", transaction_id, "client-1")

    for number in range(3):
        table.put(key(f"greedy-{number}"), ("a", 1, 2), "10.0.0.1", 0)
    table.put(key("modest"), ("a", 3, 4), "10.0.0.2", 0)
    assert table.get(key("greedy-1"), 1)
    assert table.get(key("greedy-2"), 1) is None
    modest = table.get(key("modest"), 1)
    assert modest is not None
    assert (modest.broker, modest.queue_offset, modest.physical_offset) == ("a", 3, 4)
    table.put(key("later"), ("a", 5, 6), "10.0.0.1", 120_000)
    assert len(table) == 1
