"""Connections of tests are established however long the machine pauses."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

from mqlake.remoting.client import RemotingClient
from tests.until import PATIENCE

_DEFAULTS = RemotingClient.__init__.__kwdefaults__ or {}
_USUAL = dict(_DEFAULTS)


def connect_patiently() -> None:
    """Let clients of this process wait for connections far longer than by default.

    After a pause of the event loop that outlasts their time, they would give up connections that
    were accepted.
    """
    _DEFAULTS["connect_timeout"] = PATIENCE


def usual_connections() -> AbstractContextManager[object]:
    """Let clients wait for connections as long as by default, where time is simulated."""
    return mock.patch.dict(_DEFAULTS, _USUAL)
