"""The offsets of broadcasting consumers, in the file that the Java client reads."""

from __future__ import annotations

from pathlib import Path

from mqlake.client import MessageQueue
from mqlake.client.consumer.local_offsets import LocalOffsets
from tests import simulated
from tests.client.messages import QUEUE


def test_local_offsets_are_in_the_file_that_java_reads(tmp_path: Path) -> None:
    async def run() -> None:
        offsets = LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path)
        assert await offsets.read(QUEUE) is None
        await offsets.commit(QUEUE, 7)
        await offsets.note(QUEUE, 3)  # a seek back
        await offsets.note(MessageQueue("t", "a", 1), 9)
        offsets.flush()
        again = LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path)
        assert await again.read(QUEUE) == 3
        file = tmp_path / ".rocketmq_offsets/1.2.3.4@DEFAULT/g/offsets.json"
        assert file.read_bytes().startswith(b'{"offsetTable":{{"topic":"t","brokerName":"a"')
        assert file.with_name("offsets.json.bak").exists()
        file.write_bytes(b"torn")
        assert await LocalOffsets("1.2.3.4@DEFAULT", "g", tmp_path).read(QUEUE) == 7

    simulated.run(run())
