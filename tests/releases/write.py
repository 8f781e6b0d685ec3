"""Write the store that tests of later releases open: `python -m tests.releases.write`.

To be run once for each release, with that release.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

import mqlake
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from tests.broker.pop.popping import pop
from tests.broker.running import Running, running, to
from tests.broker.transactions.half_messages import prepare

STORES = Path(__file__).parent
TOPIC, GROUP, COMMITTED = "Orders", "readers", 3
SENT = 10
LATER = "UNIQ_KEY\x01%d\x02TIMER_DELAY_SEC\x01%d\x02"
HOUR = 3600


def body(number: int) -> bytes:
    """Return the body of a message."""
    return b"message %d" % number


async def fill(broker: Running) -> None:
    """Put messages of all kinds, and leave a consumer's offset."""
    broker.state.topics.make(TOPIC, 4)
    for number in range(SENT):
        pairs = f"UNIQ_KEY\x01K{number}\x02KEYS\x01k{number}\x02TAGS\x01t{number % 2}\x02"
        answer = await broker.send(to(TOPIC, properties=pairs), body(number))
        assert answer.code == ResponseCode.SUCCESS
    for number, seconds in enumerate((HOUR, 24 * HOUR)):
        answer = await broker.send(to(TOPIC, properties=LATER % (number, seconds)), b"later")
        assert answer.code == ResponseCode.SUCCESS
    delayed = "UNIQ_KEY\x01D\x02DELAY\x0118\x02"
    assert (await broker.send(to(TOPIC, properties=delayed), b"delayed")).code == 0
    half = await prepare(broker)
    assert (await broker.ask(RequestCode.END_TRANSACTION, half)).code == ResponseCode.SUCCESS
    await prepare(broker)  # It does not end.
    broker.records(TOPIC)  # Offsets past what is dispatched are refused.
    broker.state.groups.get_or_make(GROUP)
    commit = UpdateConsumerOffsetHeader(
        consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=COMMITTED
    )
    answer = await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    assert len(await pop(broker, max_msg_nums=2)) == 2  # Nobody acknowledges them.


async def _write(path: Path) -> None:
    async with running(path) as broker:
        await fill(broker)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(_write(Path(made) / "store"))
        archive = STORES / f"{mqlake.__version__}.tar.xz"
        command = ["tar", "--sparse", "-cJf", str(archive), "-C", made, "store"]
        subprocess.run(command, check=True)
