"""What the kernel of pulls and its caller both know: where numbers are, and what they mean."""

from __future__ import annotations

from typing import Final

KEY_SIZE: Final = 1280
"""Bytes of a key in the table, of which the first 8 are unused: see `read_pull`."""
KEY_AT: Final = 8
LONGEST_HEADER: Final = 1200
"""Bytes of a header whose decision is kept."""
PLACES: Final = 6
"""Positions at the end of a key, 4 bytes each: those of the four numbers of the header, that of its
signature, and that of the length of the fields in a binary one; -1 for what it does not have."""

QUEUE_ID, QUEUE_OFFSET, COMMIT_OFFSET, OPAQUE, SIGNATURE, NUMBERS = range(6)
"""The numbers of a header, where its signature begins in what was received, and how many these
are."""
SIGNATURE_SIZE: Final = 28
"""Bytes of a signature."""
NEXT_OFFSET, MIN_OFFSET, MAX_OFFSET = range(3)
"""The numbers of an answer, before its opaque."""

ANSWER_SIZE: Final = 512
"""Bytes of the text of an answer's header, or of the text that is signed, without its numbers."""
ANSWER_ROOM: Final = ANSWER_SIZE + 128
"""Bytes of an answer without its messages."""
GAPS: Final = 5
NONE, DIGITS, COUNTED, RAW, REST, SIGNED = range(6)
"""How a number is written: not at all; as digits; as a length (i4) and digits; as i4; as the bytes
between it and the end of the header (i4), which is no number of its own; as Base64 of 20 bytes."""

MOST_MESSAGES: Final = 1024
"""Messages of one answer."""
MOST_TAGS: Final = 16
"""Tags of a subscription whose decision is kept."""
NAME_SIZE: Final = 264
"""Bytes of a topic's name in the table, of which the first 8 are unused."""
NAME_AT: Final = 8

# Columns of a decision.
IS_ACCEPTED, TOPIC, FIRST_QUEUE, QUEUES, MESSAGES, BYTES, ENTRIES, TAGS, IS_SIGNED = range(9)
"""Whether its pulls are served here; the number of its topic, of its first queue, and of its
queues; the limits of an answer; the entries that one pull examines; the number of its tags codes,
-1 if it selects all messages; whether its pulls have a signature."""
DECISION_COLUMNS: Final = 9

# Columns of a queue.
(
    GENERATION,
    VERSION,
    LOW,
    HIGH,
    FIRST_ENTRY,
    ENTRIES_ADDRESS,
    ENTRIES_COUNT,
    WARM_FROM,
    WARM_TO,
    WARM_UNTIL,
) = range(10)
"""Of which generation of mapped files and version of the reads the others are; the least and the
greatest offset; the queue offset of the first entry of its mapped file, where that is in memory,
and how many entries it has; the queue offsets whose records need no disk, as long as the log ends
before a physical offset.
"""
QUEUE_COLUMNS: Final = 10

# Columns of a served pull.
NOTE_DECISION, NOTE_QUEUE, NOTE_COMMIT, NOTE_NEXT, NOTE_MESSAGES, NOTE_BYTES = range(6)
MOST_NOTES: Final = 256

# The state: i8[STATES].
(
    NOW_GENERATION,
    NOW_VERSION,
    CONFIRMED,
    LOG_START,
    SEGMENTS,
    NOTES,
    QUEUE,
    OFFSET,
    COUNT,
    PHYSICAL,
    POSITION,
    RECEIVED,
    TO,
    MAY_SERVE,
    REASON,
    SPENT,
    TOOK,
    WAITED,
    LONGEST,
    LONGEST_OF,
    LONGEST_COUNT,
    SIGNER,
    ASKED,
) = range(23)
"""The generation of mapped files and the version of the reads; the physical offsets between which
records are; the number of mapped segments, and of served pulls. What LOOK and SEGMENT ask for: a
queue, an offset in it and how many entries; a physical offset. For `serve_pulls`: positions in the
data and in the answers. For turns of the lane: whether pulls may be served; why one was not; the
nanoseconds that were spent on what was received last, and that pulls took since they were counted;
the same for each pull, with those that were answered together; the longest of these times, its
connection and its pulls. The number of the user who has signed the last request of the connection,
and the decision for which NEW_PERMISSION asks.
"""
STATES: Final = 23

# Columns of a segment.
SEGMENT_BASE, SEGMENT_ADDRESS, SEGMENT_SIZE = range(3)

# Why the kernel returned.
SERVED, PART, OTHER, ROOM, NEW, LOOK, SEGMENT, NEW_USER, NEW_PERMISSION = range(9)
"""The pull is answered. No whole frame is left. It is to be served otherwise. The answers, or the
notes of served pulls, have no room. No decision is known. A queue must be looked up, or a segment
mapped. Who has signed the last request of the connection is unknown, or whether SIGNER may make the
pulls of the decision ASKED.
"""
