"""The columns through which runs of pulls and their kernel exchange values."""

from __future__ import annotations

SERVED, UNLIKE, UNKNOWN_QUEUE, NOT_COPIED, STALE, FEW_LEFT = range(6)
"""Why a run ends: frames or room for answers are; the next frame is not like these; its queue has
no row; its queue's messages are not copied; the offsets of its queue have to be looked up again;
its queue has fewer messages than it asks for."""

ROW_QUEUE, ROW_BUFFER, ROW_COPY = range(3)
"""Columns of a queue: its id, the buffer of its copy, and the number of that copy."""

PULL_ROW, PULL_COMMIT, PULL_NEXT, PULL_MESSAGES, PULL_BYTES = range(5)
"""Columns of a served pull: the row of its queue, the offset that it commits, the next one, and how
many messages of how many bytes it got."""
