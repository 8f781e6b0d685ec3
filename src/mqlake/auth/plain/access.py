"""The check of every request by ACL 1.0, with files that are watched."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from mqlake.auth.audit import log_refusal
from mqlake.auth.plain.accounts import Account
from mqlake.auth.plain.files import PlainFiles
from mqlake.auth.plain.verdict import check
from mqlake.auth.sources import source_of, source_text
from mqlake.errors import StoreError
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError

_log: Final = logging.getLogger(__name__)

LOOK: Final = 0.5
"""Seconds between two looks at the files."""


class PlainAccess:
    """Who may make which request, as the files of ACL 1.0 say.

    Args:
        home: the directory that contains `conf`.

    Attributes:
        files: the files.

    Raises:
        StoreError: a file is wrong.
    """

    def __init__(self, home: Path) -> None:
        self.files = PlainFiles(home)
        self._signs = self.files.signs()
        self._rules = self.files.read()
        self._failure = ""
        self._looking: asyncio.Task[None] | None = None

    def check(self, request: Command, peer: str) -> Account | None:
        """Return who has signed a request; None if its address is in a white list.

        Args:
            peer: "ip:port" of the other side.

        Raises:
            RemotingError: it is refused.
            FormatError: its body cannot be read.
        """
        source = source_of(peer)
        address = source_text(peer) if source is None else str(source)
        try:
            return check(self._rules, request, address)
        except RemotingError as error:
            line = "[ACL] request %d from %s is refused: %s"
            log_refusal(peer, line, request.code, peer, error.remark)
            raise

    def account(self, name: str) -> Account | None:
        """Return the account with an access key; None if it does not exist."""
        return self._rules.accounts.get(name)

    def look(self) -> None:
        """Look for changes of the files in a thread; what they say takes effect after that."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        """Return once no thread looks at the files."""
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    async def reload(self) -> None:
        """Let the files take effect now.

        Raises:
            StoreError: a file is wrong; the accounts stay as they were.
        """
        self._rules = await asyncio.to_thread(self.files.read)

    async def _look(self) -> None:
        signs = await asyncio.to_thread(self.files.signs)
        if signs == self._signs:
            return
        try:
            await self.reload()
        except StoreError as error:
            # It is tried again: what cannot be read now may be readable later, without a change.
            if (failure := str(error)) != self._failure:
                _log.error("the accounts stay as they were: %s", failure)
            self._failure = failure
        else:
            self._signs, self._failure = signs, ""
            _log.info("the accounts were read again: there are %d", len(self._rules.accounts))
