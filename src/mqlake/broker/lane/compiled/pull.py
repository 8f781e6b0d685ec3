"""Answer pulls whose decision is known, with records of mapped files.

Whatever is in the files, nothing outside of them is read: each entry and each record is judged as
the ordinary path judges it (`mqlake.dispatch.compiled.queue_read`). A pull that meets anything but
good records is left to the ordinary path, with the same result.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.pull_header import put_header, read_pull
from mqlake.broker.lane.compiled.pull_signatures import check_signer
from mqlake.broker.lane.pull_layout import (
    ANSWER_ROOM,
    BYTES,
    COMMIT_OFFSET,
    CONFIRMED,
    COUNT,
    ENTRIES,
    ENTRIES_ADDRESS,
    ENTRIES_COUNT,
    FIRST_ENTRY,
    FIRST_QUEUE,
    GENERATION,
    HIGH,
    IS_ACCEPTED,
    KEY_AT,
    KEY_SIZE,
    LOG_START,
    LOOK,
    LOW,
    MAX_OFFSET,
    MESSAGES,
    MIN_OFFSET,
    NAME_AT,
    NAME_SIZE,
    NEW,
    NEXT_OFFSET,
    NOTE_BYTES,
    NOTE_COMMIT,
    NOTE_DECISION,
    NOTE_MESSAGES,
    NOTE_NEXT,
    NOTE_QUEUE,
    NOTES,
    NOW_GENERATION,
    NOW_VERSION,
    OFFSET,
    OPAQUE,
    OTHER,
    PART,
    PHYSICAL,
    POSITION,
    QUEUE,
    QUEUE_ID,
    QUEUE_OFFSET,
    QUEUES,
    RECEIVED,
    ROOM,
    SEGMENT,
    SEGMENT_ADDRESS,
    SEGMENT_BASE,
    SEGMENT_SIZE,
    SEGMENTS,
    SERVED,
    TAGS,
    TO,
    TOPIC,
    VERSION,
    WARM_FROM,
    WARM_TO,
    WARM_UNTIL,
)
from mqlake.dispatch.compiled.queue_read import judge_record, may_match
from mqlake.dispatch.compiled.queues import bytes_hash, equal_bytes
from mqlake.formats.consume_queue import ENTRY_SIZE
from mqlake.formats.record import Fault
from mqlake.kernels.jit import inlined, kernel
from mqlake.kernels.memory import (
    BLOCK,
    borrow,
    bytes_at,
    copy,
    load_i32,
    load_i64,
    load_u32,
    prefetch_read,
    store_i32,
)

_GOOD = int(Fault.GOOD)
_LENGTHS = 8
_SIZE_AT, _TAGS_CODE_AT = 8, 12
_AHEAD = 4
"""Records between the one that is judged and the one that is fetched into the core's cache."""
_FETCHED = 8 * BLOCK
_TARGET_SEGMENT, _TARGET_AT, _TARGET_SIZE = range(3)
_FOUND = -1
"""Instead of a reason to return."""


@inlined
def _find_decision(tables, size):
    """Return the number of the decision on the key that was read; -1 if no decision is known."""
    slots, keys, key = tables.slots, tables.keys, tables.key
    mask = len(slots) - 1
    slot = np.int64(bytes_hash(key, KEY_AT, size, tables.seed)) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        if tables.sizes[number] == size and equal_bytes(
            keys, number * KEY_SIZE + KEY_AT, key, KEY_AT, size
        ):
            return number
        slot = (slot + 1) & mask
    return np.int64(-1)


@inlined
def _find_segment(state, segments, offset):
    """Return the row of the mapped segment that contains a physical offset, -1 if none does."""
    for row in range(state[SEGMENTS]):
        base = segments[row, SEGMENT_BASE]
        if base <= offset < base + segments[row, SEGMENT_SIZE]:
            return row
    return -1


@inlined
def _is_warm(state, queue, offset, stop):
    """Return whether reading from one offset to another needs no disk."""
    return (
        queue[WARM_FROM] <= offset
        and stop <= queue[WARM_TO]
        and state[CONFIRMED] < queue[WARM_UNTIL]
    )


@inlined
def _fetch(log, base, entries, place):
    """Begin to load the record of an entry: records of one queue are scattered over the log."""
    if place + ENTRY_SIZE <= len(entries):
        at = load_i64(entries, place) - base
        if 0 <= at < len(log):
            for block in range(0, min(load_i32(entries, place + _SIZE_AT), _FETCHED), BLOCK):
                prefetch_read(log, at + block)


@inlined
def _follow(tables, decision, queue_id, row, offset, stop):
    """Find the good records of a queue from an offset on; fill `targets`.

    Returns:
        _FOUND or a reason to return, how many messages of how many bytes, and the queue offset
        after them.
    """
    state, segments, targets = tables.state, tables.segments, tables.targets
    queue, decided = tables.queues[row], tables.decisions[decision]
    first = queue[FIRST_ENTRY]
    entries = bytes_at(queue[ENTRIES_ADDRESS], queue[ENTRIES_COUNT] * ENTRY_SIZE)
    topic_at = decided[TOPIC] * NAME_SIZE
    topic = borrow(tables.names[topic_at : topic_at + NAME_AT + tables.name_sizes[decided[TOPIC]]])
    by_code, codes = decided[TAGS] >= 0, tables.codes[decision, : max(0, decided[TAGS])]
    segment, base, log = -1, np.int64(0), entries
    messages, total, number = 0, np.int64(0), offset
    while number < stop:
        place = (number - first) * ENTRY_SIZE
        at, size = load_i64(entries, place), load_i32(entries, place + _SIZE_AT)
        if messages > 0 and (messages >= decided[MESSAGES] or total + size > decided[BYTES]):
            break
        if by_code and not may_match(load_i64(entries, place + _TAGS_CODE_AT), codes):
            number += 1
            continue
        if at < state[LOG_START] or at >= state[CONFIRMED] or messages >= len(targets):
            return OTHER, messages, total, number
        if segment < 0 or at < base or at >= base + len(log):
            segment = _find_segment(state, segments, at)
            if segment < 0:
                state[PHYSICAL] = at
                return SEGMENT, messages, total, number
            base = segments[segment, SEGMENT_BASE]
            log = bytes_at(segments[segment, SEGMENT_ADDRESS], segments[segment, SEGMENT_SIZE])
        _fetch(log, base, entries, place + _AHEAD * ENTRY_SIZE)
        end = min(base + len(log), state[CONFIRMED]) - base
        fault = judge_record(log, at - base, end, at, size, topic, NAME_AT, queue_id, number, True)
        if fault != _GOOD:
            return OTHER, messages, total, number
        targets[messages, _TARGET_SEGMENT] = segment
        targets[messages, _TARGET_AT], targets[messages, _TARGET_SIZE] = at - base, size
        messages, total, number = messages + 1, total + size, number + 1
    return _FOUND if messages > 0 else OTHER, messages, total, number


@inlined
def _put_records(tables, messages, answers, to):
    """Copy the records of `targets`; return the position after them."""
    segments, targets = tables.segments, tables.targets
    for number in range(messages):
        row, size = targets[number, _TARGET_SEGMENT], targets[number, _TARGET_SIZE]
        log = bytes_at(segments[row, SEGMENT_ADDRESS], segments[row, SEGMENT_SIZE])
        copy(answers, to, log, targets[number, _TARGET_AT], size)
        to += size
    return to


@inlined
def _note(state, notes, decision, row, commit, following, messages, total):
    note = notes[state[NOTES]]
    note[NOTE_DECISION], note[NOTE_QUEUE], note[NOTE_COMMIT] = decision, row, commit
    note[NOTE_NEXT], note[NOTE_MESSAGES], note[NOTE_BYTES] = following, messages, total
    state[NOTES] += 1


@inlined
def _recognise(tables, data, at, end):
    """Return (SERVED or a reason to return, the position after the frame, its decision)."""
    if end - at <= _LENGTHS:
        return PART, at, np.int64(-1)
    length, header = load_u32(data, at), load_u32(data, at + 4)
    following = at + 4 + length
    if following > end:
        return PART, at, np.int64(-1)
    if length != 4 + (header & 0xFFFFFF):
        return OTHER, at, np.int64(-1)
    size = read_pull(
        data, at + _LENGTHS, following, header >> 24, tables.key, tables.places, tables.numbers
    )
    if size < 0:
        return OTHER, at, np.int64(-1)
    decision = _find_decision(tables, size)
    if decision < 0:
        return NEW, at, decision
    if tables.decisions[decision, IS_ACCEPTED] == 0:
        return OTHER, at, decision
    if tables.numbers[QUEUE_ID] >= tables.decisions[decision, QUEUES]:
        return OTHER, at, decision
    reason = check_signer(tables, data, decision)
    return reason, following if reason == SERVED else at, decision


@inlined
def serve_pull(tables, data, at, end, answers, to):
    """Answer the pull at a position; return (why it ends, the positions after it and its answer).

    Args:
        tables: see `PullTables`.
        end: position after what was received.
        answers: gets the answer from position `to` on.
    """
    state, numbers, answered = tables.state, tables.numbers, tables.answered
    reason, following, decision = _recognise(tables, data, at, end)
    if reason != SERVED:
        return reason, at, to
    decided, offset = tables.decisions[decision], numbers[QUEUE_OFFSET]
    row = decided[FIRST_QUEUE] + numbers[QUEUE_ID]
    queue = tables.queues[row]
    state[QUEUE], state[OFFSET], state[COUNT] = row, offset, decided[ENTRIES]
    if queue[GENERATION] != state[NOW_GENERATION] or queue[VERSION] != state[NOW_VERSION]:
        return LOOK, at, to
    if offset < queue[LOW] or offset >= queue[HIGH]:
        return OTHER, at, to
    stop = min(offset + decided[ENTRIES], queue[HIGH])
    first, after = queue[FIRST_ENTRY], queue[FIRST_ENTRY] + queue[ENTRIES_COUNT]
    if offset < first or offset >= after:
        return LOOK, at, to
    if stop > after:
        return OTHER, at, to  # It continues in the next file.
    if not _is_warm(state, queue, offset, stop):
        return LOOK, at, to
    reason, messages, total, number = _follow(
        tables, decision, numbers[QUEUE_ID], row, offset, stop
    )
    if reason != _FOUND:
        return reason, at, to
    if len(answers) - to < total + ANSWER_ROOM or state[NOTES] >= len(tables.notes):
        return (ROOM if to > 0 or state[NOTES] > 0 else OTHER), at, to
    answered[NEXT_OFFSET], answered[OPAQUE] = number, numbers[OPAQUE]
    answered[MIN_OFFSET], answered[MAX_OFFSET] = queue[LOW], queue[HIGH]
    body = put_header(answers, to + _LENGTHS, tables.texts, tables.parts, decision, answered)
    store_i32(answers, to, body - to - 4 + total)
    store_i32(answers, to + 4, load_u32(data, at + 4) >> 24 << 24 | (body - to - _LENGTHS))
    _note(state, tables.notes, decision, row, numbers[COMMIT_OFFSET], number, messages, total)
    return SERVED, following, _put_records(tables, messages, answers, body)


@kernel
def serve_pulls(tables, data, answers):
    """Answer the pulls from state[POSITION] on; return why that ends."""
    data, answers, state = borrow(data), borrow(answers), tables.state
    reason = SERVED
    while reason == SERVED:
        reason, state[POSITION], state[TO] = serve_pull(
            tables, data, state[POSITION], state[RECEIVED], answers, state[TO]
        )
    return reason


@kernel
def read_key(data, at, end, kind, key, places, numbers):
    """Read the header of a pull by itself: see `read_pull`."""
    return read_pull(borrow(data), at, end, kind, borrow(key), places, numbers)


@kernel
def enter_decision(tables, size, number):
    """Enter the decision on `tables.key`, which is not in the table."""
    slots, mask = tables.slots, len(tables.slots) - 1
    slot = np.int64(bytes_hash(tables.key, KEY_AT, size, tables.seed)) & mask
    while slots[slot] != 0:
        slot = (slot + 1) & mask
    slots[slot] = number + 1
    copy(tables.keys, number * KEY_SIZE, tables.key, 0, KEY_AT + size)
    tables.sizes[number] = size
