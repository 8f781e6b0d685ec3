"""How transactions end, and who is asked about those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlake.formats import record
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.transactions import CheckTransactionHeader, EndTransactionHeader
from mqlake.store.delivery.transaction_messages import HALF_TOPIC
from tests import simulated
from tests.broker.clients_of import known_client
from tests.broker.running import running
from tests.broker.transactions.half_messages import changed, prepare


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_commit_and_roll_back(tmp_path: Path, flush: str) -> None:
    async def run() -> None:
        async with running(tmp_path, flushDiskType=flush) as broker:
            committed, rolled_back = await prepare(broker), await prepare(broker)
            assert broker.records("Orders", 1) == []
            for header, outcome in (
                (committed, TRANSACTION_NONE),
                (committed, TRANSACTION_COMMIT),
                (rolled_back, TRANSACTION_ROLLBACK),
            ):
                wanted = changed(header, commit_or_rollback=outcome)
                answer = await broker.ask(RequestCode.END_TRANSACTION, wanted)
                assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
            (message,) = broker.records("Orders", 1)
            assert message.body == b"half"
            assert message.prepared_transaction_offset == committed.commit_log_offset

    simulated.run(run())


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"commit_log_offset": 1 << 40}, ResponseCode.SYSTEM_ERROR, "Find prepared"),
        ({"commit_log_offset": -5}, ResponseCode.SYSTEM_ERROR, "Find prepared"),
        ({"producer_group": "others"}, ResponseCode.SYSTEM_ERROR, "producer group wrong"),
        ({"tran_state_table_offset": 9}, ResponseCode.SYSTEM_ERROR, "table offset wrong"),
        ({"commit_or_rollback": 5}, ResponseCode.SYSTEM_ERROR, "commitOrRollback field wrong"),
    ],
)
def test_not_ended(tmp_path: Path, fields: dict[str, Any], code: ResponseCode, remark: str) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = changed(await prepare(broker), **fields)
            answer = await broker.ask(RequestCode.END_TRANSACTION, header)
            assert answer.code == code
            assert remark in str(answer.remark)

    simulated.run(run())


def test_a_producer_of_the_group_is_asked(tmp_path: Path) -> None:
    async def run() -> None:
        fast = {"transactionCheckInterval": 100, "transactionTimeOut": 1}
        check = {RequestCode.CHECK_TRANSACTION_STATE: 0}
        async with (
            running(tmp_path, **fast) as broker,
            known_client(broker, check, "other", "others") as other,
            known_client(broker, check, "one", "producers") as producer,
        ):
            await prepare(broker)
            question = await producer.next()
            assert question.is_oneway
            header = question.header(CheckTransactionHeader)
            assert (header.topic, header.msg_id, header.transaction_id) == (
                HALF_TOPIC,
                "ABC",
                "ABC",
            )
            assert header.broker_name == "broker-a"
            half = record.decode(bytes(question.body))
            assert (half.topic, half.queue_id, half.body) == ("Orders", 1, b"half")
            assert half.properties["PGROUP"] == "producers"
            assert half.properties["TRANSACTION_CHECK_TIMES"] == "1"
            assert half.physical_offset == header.commit_log_offset
            assert header.offset_msg_id == half.message_id
            answer = EndTransactionHeader(
                producer_group="producers",
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=TRANSACTION_COMMIT,
                from_transaction_check=True,
            )
            assert (await producer.ask(RequestCode.END_TRANSACTION, answer)).code == 0
            assert [found.body for found in broker.records("Orders", 1)] == [b"half"]
            assert other.asked.empty()

    simulated.run(run())
