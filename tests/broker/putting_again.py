"""Messages that the broker puts again."""

from __future__ import annotations

from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.send import SendBackHeader
from tests.broker.pop.popping import GROUP, TOPIC
from tests.broker.running import Running

FAST = {
    "messageDelayLevel": "1s 1s 1s 1s",
    "timerPrecisionMs": 100,
    "transactionTimeOut": 1,
    "transactionCheckInterval": 200,
}

KEY = "UNIQ_KEY\x01" + "A" * 32 + "\x02"

HALF = "TRAN_MSG\x01true\x02PGROUP\x01producers\x02"


async def give_back(broker: Running, record: Record, level: int = 1) -> Command:
    asked = SendBackHeader(
        offset=record.physical_offset, group=GROUP, delay_level=level, origin_topic=TOPIC
    )
    return await broker.ask(RequestCode.CONSUMER_SEND_MSG_BACK, asked)
