"""Complete the light queues of a store: their entries are derived from the log where they end."""

from __future__ import annotations

from mqlake.formats.consume_queue import parse_delay_levels
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.light.light_queues import LightQueues
from mqlake.store.log.segments import CommitLog
from mqlake.store.log.steps import LogSteps
from mqlake.store.recovery.log_walk import LogWalk
from mqlake.store.settings import StoreSettings


def recover_light(
    *,
    directory: OwnedDirectory,
    settings: StoreSettings,
    log: CommitLog,
    incarnations: Incarnations,
    position: int,
    end: int,
    across_gaps: bool,
) -> LightQueues | None:
    """Return the light queues, complete up to the log's end and durable; None if they are off.

    Args:
        position: physical offset before which their entries are durable, if the files are there;
            -1 if that is unknown.
        end: physical offset of the log's end.
        across_gaps: whether the log continues after a missing file.

    Raises:
        DiskError: the disk failed.
        StoreError: the log cannot be read.
    """
    size = log.segment_size or settings.mapped_file_size_commit_log
    light = LightQueues(directory, size, incarnations)
    light.trim(log.min_offset)
    if not settings.enable_lmq:
        light.remove_all()
        return None
    start = light.recover(position, end)
    walk = _walk(log, settings, incarnations, across_gaps=across_gaps)
    for batch in walk.batches_across_faults(start, end):
        light.take(batch)
    light.complete()
    return light


def _walk(
    log: CommitLog, settings: StoreSettings, incarnations: Incarnations, *, across_gaps: bool
) -> LogWalk:
    levels = parse_delay_levels(settings.message_delay_level)
    steps = LogSteps(log, levels, index_tags=False, across_gaps=across_gaps)
    return LogWalk(log, steps, incarnations)
