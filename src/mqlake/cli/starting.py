"""The first line of a server's log: the rest of the program takes seconds to load."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from mqlake.spark.waiting import progress_lines

_log = logging.getLogger(__name__)


def logged_loading(program: str) -> AbstractContextManager[None]:
    """Log the version of mqlake and the program that is loaded, and every 1.5 s that it still is.

    Args:
        program: what is loaded, such as "broker".
    """
    from mqlake import __version__

    return progress_lines(f"mqlake {__version__}: loading the {program}", _log.info)
