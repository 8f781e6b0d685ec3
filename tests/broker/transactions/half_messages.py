"""Half messages, and what ends them."""

from __future__ import annotations

from typing import Any

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.sys_flag import TRANSACTION_COMMIT
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.protocol.headers.transactions import EndTransactionHeader
from tests.broker.running import Running, to

PAIRS = "TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01ABC\x02TAGS\x01new\x02"


async def prepare(broker: Running, pairs: str = PAIRS) -> EndTransactionHeader:
    """Send a half message; return what would commit it."""
    now = broker.state.store.core.clock.milliseconds()
    header = to("Orders", properties=pairs, sys_flag=4, queue_id=1, born_timestamp=now)
    answer = await broker.send(header, b"half")
    assert answer.code == ResponseCode.SUCCESS
    found = answer.header(SendMessageResponseHeader)
    _, offset = decode_message_id(found.msg_id)
    return EndTransactionHeader(
        producer_group="producers",
        tran_state_table_offset=found.queue_offset,
        commit_log_offset=offset,
        commit_or_rollback=TRANSACTION_COMMIT,
    )


def changed(header: EndTransactionHeader, **fields: Any) -> EndTransactionHeader:
    values = {name: getattr(header, name) for name in header.__struct_fields__}
    return EndTransactionHeader(**(values | fields))
