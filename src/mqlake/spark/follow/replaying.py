"""Move dead letters into a table whose columns Spark may have to decode from bodies."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from functools import partial

import pyarrow as pa

from mqlake.errors import JobError
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.lake.body_format import NEEDED
from mqlake.lake.follow.letter_replay import Decoder, NoBodies, ReplayReport, replay_letters
from mqlake.lake.options import FollowOptions
from mqlake.spark.follow.body_columns import typed_rows
from mqlake.spark.follow.job import with_body_fields
from mqlake.spark.session import Session


@reports_disk_faults
def replay(options: FollowOptions, session: Session | None = None) -> ReplayReport:
    """Move the valid messages among the dead letters into the table.

    Args:
        session: decodes bodies, if their fields are columns of the table.

    Raises:
        JobError: the checkpoint is in use, or the table still refuses rows.
    """
    return replay_letters(options, partial(_decoder, session))


def _decoder(session: Session | None, options: FollowOptions) -> Decoder:
    if options.body is None:
        return NoBodies(options)
    if session is None:
        raise JobError("bodies are decoded by Spark: replay needs a session")
    return _SparkDecoder(session, with_body_fields(session, options))


class _SparkDecoder:
    """Decodes bodies in a session."""

    needed = NEEDED

    def __init__(self, session: Session, options: FollowOptions) -> None:
        self._session, self.options = session, options

    def decoded(self, rows: pa.Table) -> pa.Table:
        """Return messages with the columns of their bodies."""
        if self.options.body is None or not rows.num_rows:
            return rows
        return typed_rows(self._session.spark, rows, self.options.body)
