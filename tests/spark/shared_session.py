"""One embedded session of a process, for all tests that need no other."""

from __future__ import annotations

import atexit
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from mqlake.jobs.local import Progress
from mqlake.spark import session as sessions
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.spark.interpreted import INTERPRETED
from tests.spark.servers import ROOT

Steps = list[tuple[str, int, int]]


class Shared:
    """The session, open from its first use until a test needs another one, or the process ends."""

    def __init__(self) -> None:
        self.session: ClassicSession | None = None
        self.steps: Steps = []

    def open(self) -> ClassicSession:
        if self.session is None:
            session = open_session(
                "local[2]",
                progress=lambda *step: self.steps.append(step),
                settings={"spark.executorEnv.PYTHONPATH": str(ROOT), **INTERPRETED},
            )
            assert isinstance(session, ClassicSession)
            self.session = session
        return self.session

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None


SHARED = Shared()
atexit.register(SHARED.close)


@contextmanager
def shared_with_commands() -> Generator[ClassicSession]:
    """Let commands that run in this process use the shared session: each start takes seconds.

    What a program does with a session of its own is tested where programs run.
    """
    session = SHARED.open()

    def opened(
        master: str | None = None,
        *,
        progress: Progress | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Any:
        assert master is None
        assert not settings
        return nullcontext(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "open_session", opened)
        yield session
