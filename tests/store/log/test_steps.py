"""Steps over a log whose file is truncated while it is read."""

from __future__ import annotations

import os
from pathlib import Path

from mqlake.formats.file_name import segment_name
from mqlake.formats.record import Fault
from mqlake.storage.local import LocalDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.log.segments import open_log
from mqlake.store.log.steps import LogSteps

SIZE = 1 << 16
BUFFERS = 2
"""The windows that steps read into, by turns."""


def test_a_truncated_file_does_not_end_in_what_was_read_before(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path, {"mappedFileSizeCommitLog": SIZE}) as store:
        ends = [store.put(Message("topic", b"body %d" % number)).end for number in range(3)]
    log = open_log(LocalDirectory(tmp_path))
    steps = LogSteps(log, (1000,), index_tags=False, across_gaps=False)
    for _ in range(BUFFERS):
        step = steps.step(0, ends[-1])
        assert (step.end, step.fault) == (ends[-1], Fault.GOOD)
    os.truncate(tmp_path / "commitlog" / segment_name(0), ends[0])
    step = steps.step(0, ends[-1])
    assert step.batch is not None
    assert (len(step.batch.records), step.end) == (1, ends[0])
    assert step.fault is not Fault.GOOD
    log.close()
