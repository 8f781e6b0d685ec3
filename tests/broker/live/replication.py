"""What a SYNC_MASTER waits for."""

from __future__ import annotations

import asyncio

from mqlake.protocol.codes import ResponseCode
from tests.broker.live.observing import change, observes, soon
from tests.broker.running import Running, to
from tests.until import rounds, until

HOUR = 60 * 60 * 1000
SYNC: dict[str, object] = {"brokerRole": "SYNC_MASTER", "slaveTimeout": HOUR}


async def code(broker: Running) -> int:
    """Return the answer's code to a send."""
    return (await broker.send(to("Orders"))).code


@observes("inSyncReplicas", **SYNC)
async def copies(broker: Running) -> None:
    assert await code(broker) == ResponseCode.SLAVE_NOT_AVAILABLE
    await change(broker, inSyncReplicas=1)
    assert await code(broker) == ResponseCode.SUCCESS


@observes("enableAutoInSyncReplicas", **SYNC)
async def fewer_copies(broker: Running) -> None:
    assert await code(broker) == ResponseCode.SLAVE_NOT_AVAILABLE
    await change(broker, enableAutoInSyncReplicas=True)
    assert await code(broker) == ResponseCode.SUCCESS


@observes("minInSyncReplicas", **SYNC, enableAutoInSyncReplicas=True)
async def fewest_copies(broker: Running) -> None:
    assert await code(broker) == ResponseCode.SUCCESS
    await change(broker, minInSyncReplicas=2)
    assert await code(broker) == ResponseCode.SLAVE_NOT_AVAILABLE


@observes("slaveTimeout", **SYNC)
async def timeout(broker: Running) -> None:
    broker.state.store.copies.join(0)
    marks = broker.state.store.watermarks
    before = marks.end
    sending = asyncio.ensure_future(code(broker))
    try:
        await until(lambda: marks.kept >= marks.end > before)
        await rounds()
        assert not sending.done()
        await change(broker, slaveTimeout=50)
        await soon(asyncio.shield(sending))
        assert sending.result() == ResponseCode.FLUSH_SLAVE_TIMEOUT
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


@observes("haMaxGapNotInSync", **SYNC, haMaxGapNotInSync=1)
async def gap(broker: Running) -> None:
    copies = broker.state.store.copies
    copies.join(0)
    await code(broker)
    assert copies.in_sync == 0
    await change(broker, haMaxGapNotInSync=1 << 30)
    assert copies.in_sync == 1
