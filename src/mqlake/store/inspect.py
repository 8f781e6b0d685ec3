"""Inspect a whole store: its contents, its shutdown state, and its damage."""

from __future__ import annotations

from mqlake.formats.config import ConsumerOffsets, SubscriptionGroups, Topics
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.formats.damage import Damage
from mqlake.formats.record import FAULT_REASONS, Fault
from mqlake.store import report
from mqlake.store.config.config_files import read_config
from mqlake.store.log import cut_off
from mqlake.store.log.beyond_end import find_good_records
from mqlake.store.log.end import LogEnd, find_end, last_segments_start
from mqlake.store.log.file_end import end_of_data
from mqlake.store.queues.queue_files import QueueFiles, queue_ids
from mqlake.store.queues.queue_kind import BATCH, SIMPLE
from mqlake.store.snapshot import Snapshot

_CLEAN_ENDS = (Fault.UNWRITTEN, Fault.SHORT, Fault.BLANK)


def inspect(snapshot: Snapshot) -> report.StoreReport:
    """Return the report on the current state of a store."""
    detected, checkpoint = snapshot.detected, snapshot.checkpoint
    is_clean = None if snapshot.owner is not None else not snapshot.has_abort_file
    return report.StoreReport(
        store=snapshot.directory.describe(),
        last_stop_was_clean=is_clean,
        owner=snapshot.owner,
        abort_process=snapshot.abort_process,
        dialect=detected.dialect.value,
        detected_by=detected.detected_by,
        commit_log=_commit_log(snapshot),
        queue_file_size=snapshot.queue_file_size,
        topics=_topics(snapshot),
        index=_index(snapshot),
        checkpoint=checkpoint and report.CheckpointReport(*checkpoint),
        config=_config(snapshot),
        damage=[*snapshot.index.damage, *_queue_damage(snapshot)],
    )


def _commit_log(snapshot: Snapshot) -> report.CommitLogReport:
    log, end = snapshot.log, _end(snapshot)
    if snapshot.owner is None:
        beyond = find_good_records(log, end.offset)
        damage = [*log.damage, *_end_damage(snapshot, end, beyond)]
    else:
        # Bytes after the end are what the broker has written since.
        beyond, damage = report.BeyondEndReport(records=0, length=0, ranges=[]), log.damage
    files = [report.LogFileReport(s.name, s.base, s.end - s.base) for s in log.segments]
    return report.CommitLogReport(
        min_offset=log.min_offset,
        max_offset=end.offset,
        files=files,
        file_size=log.segment_size,
        end_reason=FAULT_REASONS[end.fault] if len(damage) > len(log.damage) else None,
        damage=damage,
        beyond_end=beyond,
        cut_off=cut_off.report(snapshot.directory),
    )


def _end(snapshot: Snapshot) -> LogEnd:
    """Return the log's end as RocketMQ finds it when it starts."""
    if snapshot.is_crashed:
        return snapshot.end
    return find_end(snapshot.log, last_segments_start(snapshot.log))


def _end_damage(snapshot: Snapshot, end: LogEnd, beyond: report.BeyondEndReport) -> list[Damage]:
    """Return the bad record at the end; nothing if the log simply ends there."""
    segment = snapshot.log.segment_at(end.offset)
    if segment is None or (end.fault in _CLEAN_ENDS and not beyond.ranges):
        return []
    _, layout = snapshot.log.check(end.offset)
    following = beyond.ranges[0].offset if beyond.ranges else segment.end
    stop = end.offset + layout.size if layout else min(following, segment.end)
    file = snapshot.log.file(segment)
    if layout is None and file and stop == segment.end:
        start = end.offset - segment.base
        stop = segment.base + end_of_data(file, start, stop - segment.base)
    reason = FAULT_REASONS[end.fault]
    return [Damage(segment.path, end.offset - segment.base, stop - end.offset, reason)]


def _topics(snapshot: Snapshot) -> list[report.TopicReport]:
    queues: dict[str, set[int]] = {}
    for topic, queue_id in snapshot.undispatched.bounds:
        queues.setdefault(topic, set()).add(queue_id)
    for topic in snapshot.topics_with_files:
        for kind in (SIMPLE, BATCH):
            queues.setdefault(topic, set()).update(queue_ids(snapshot.directory, topic, kind))
    settings = read_config(snapshot.directory, Topics) or Topics()
    found: list[report.TopicReport] = []
    for topic in sorted(queues):
        setting = settings.topic_config_table.get(topic)
        found.append(
            report.TopicReport(
                topic,
                [_queue(snapshot, topic, queue_id) for queue_id in sorted(queues[topic])],
                setting and setting.read_queue_nums,
                setting and setting.write_queue_nums,
            )
        )
    return found


def _queue(snapshot: Snapshot, topic: str, queue_id: int) -> report.QueueReport:
    return report.QueueReport(queue_id, *snapshot.queue_range(topic, queue_id))


def _queue_damage(snapshot: Snapshot) -> list[Damage]:
    whole = snapshot.queue_file_size
    return [
        damage
        for topic in snapshot.topics_with_files
        for queue_id in queue_ids(snapshot.directory, topic)
        for damage in QueueFiles(snapshot.directory, topic, queue_id, whole_size=whole).damage()
    ]


def _index(snapshot: Snapshot) -> list[report.IndexFileReport]:
    return [
        report.IndexFileReport(file.name, *file.header, file.sizes.slots, file.sizes.max_entries)
        for file in snapshot.index.files
    ]


def _config(snapshot: Snapshot) -> report.ConfigReport:
    topics = read_config(snapshot.directory, Topics)
    offsets = read_config(snapshot.directory, ConsumerOffsets)
    groups = read_config(snapshot.directory, SubscriptionGroups)
    found: dict[str, dict[str, dict[int, int]]] = {}
    for group in groups.subscription_group_table if groups else ():
        found[group] = {}
    for name, queues in offsets.offset_table.items() if offsets else ():
        topic, separator, group = name.rpartition(TOPIC_GROUP_SEPARATOR)
        if separator:
            found.setdefault(group, {})[topic] = queues
    return report.ConfigReport(
        topics=len(topics.topic_config_table) if topics else 0,
        consumer_groups=[report.GroupReport(group, found[group]) for group in sorted(found)],
        deleted_before={
            topic: before
            for topic, before in sorted(snapshot.incarnations.befores.items())
            if before > snapshot.log.min_offset
        },
    )
