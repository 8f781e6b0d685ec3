"""A slave under a controller: its commit log follows that of the elected master.

Upstream: `AutoSwitchHAClient`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.epoch_file import Epoch
from mqlake.protocol.replication.auto_switch import (
    Handshake,
    HandshakeAnswer,
    MasterReader,
    encode_handshake,
    encode_report,
)
from mqlake.protocol.replication.frames import Piece
from mqlake.remoting.tls.options import ClientTls
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.comparison import Begin, Comparison, DivergedError
from mqlake.replication.connecting import MasterConnection
from mqlake.replication.master_log import MasterLog
from mqlake.replication.reception import Reception
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store, common_end


class AutoSwitchReception(Reception):
    """Receives the log of the group's master, after cutting its own where the group's differs."""

    _encode_report = staticmethod(encode_report)

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        group: Group,
        activated: Callable[[], object] | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        super().__init__(settings, store, activated=activated, tls=tls)
        self._group = group
        self._messages = MasterReader()
        self._masters: tuple[Epoch, ...] = ()
        self._epoch, self._confirmed = Epoch(-1, 0), 0

    async def _greet(self, connection: MasterConnection, master: MasterLog | None) -> Comparison:
        """Return what to ask the master for, after the handshake.

        Raises:
            MqlakeError: this log must be cut first; the cut has begun.
            DivergedError: this log cannot be the master's.
        """
        self._store.copies.note_confirmed(self._store.watermarks.dispatched)
        self._messages = MasterReader()
        learner = self._settings.now.async_learner
        connection.write(encode_handshake(Handshake(self._group.broker_id, is_learner=learner)))
        answer = await self._answer(connection)
        self._masters = answer.epochs
        await self._check_common(answer)
        start = master.start if master is not None else 0
        is_shorter = self._begin is Begin.OWN_LAST_FILE
        begin = self._begin if is_shorter else Begin.FIRST_FILE
        return self._comparison(MasterLog(min(start, answer.end), answer.end), begin)

    async def _answer(self, connection: MasterConnection) -> HandshakeAnswer:
        while True:
            for message in self._messages.feed(await self._read(connection)):
                if not isinstance(message, HandshakeAnswer):
                    raise FormatError("the master sends its log before it answers the handshake")
                return message

    async def _check_common(self, answer: HandshakeAnswer) -> None:
        """Cut this log if it differs from the master's.

        Raises:
            MqlakeError: it is being cut; connect to the master again.
            DivergedError: the logs have nothing in common.
        """
        epochs, end = self._group.epochs, self._store.copying.expected
        if self._are_both_empty(answer):
            # If this broker is elected before anything arrives, it must have an epoch in common
            # with a master that has written something by then, which nobody has confirmed.
            await asyncio.to_thread(epochs.adopt, answer.epochs, answer.end + 1)
            return
        if not epochs.all:
            return  # A new broker, or one without a controller until now: its bytes are compared.
        common = common_end(epochs.all, end, answer.epochs, answer.end)
        if common is None and end > 0:
            raise DivergedError(
                f"this log ({_text(epochs.all)}) and its master's ({_text(answer.epochs)}) have no"
                " epoch in common"
            )
        common = common or 0
        if common < end:
            if common < self._store.watermarks.min_offset:
                raise DivergedError(
                    f"this log and its master's are the same up to physical offset {common}, which"
                    " is not here any more"
                )
            newest = answer.epochs[-1].number if answer.epochs else -1
            if newest < epochs.last_number:
                raise MqlakeError(
                    f"the master's log has epoch {newest}, and this log has epoch"
                    f" {epochs.last_number}: it is not the group's master any more"
                )
            self._group.cut(common)
            raise MqlakeError(
                f"this log ends at physical offset {end}, but the group's continues from {common}:"
                " the rest, which was never confirmed, is cut off"
            )
        last = epochs.last
        if last is not None and last.start >= common and last not in answer.epochs:
            await asyncio.to_thread(epochs.cut, common)

    def _are_both_empty(self, answer: HandshakeAnswer) -> bool:
        """Whether neither this broker nor its master, which is no older one, has a record."""
        copying, theirs = self._store.copying, answer.epochs
        if not copying.is_empty or not theirs or theirs[-1].number < self._group.epochs.last_number:
            return False
        return theirs[0].start == answer.end == copying.expected

    def _pieces(self, data: memoryview) -> Iterator[Piece]:
        for message in self._messages.feed(data):
            if isinstance(message, HandshakeAnswer):
                raise FormatError("the master answers a handshake that was not made")
            self._epoch, self._confirmed = message.epoch, message.confirmed
            yield message.piece

    def _before(self, piece: Piece, comparison: Comparison) -> Awaitable[object] | None:
        """Store the epoch of the bytes in a piece before any of them is acknowledged."""
        epochs, copying, epoch = self._group.epochs, self._store.copying, self._epoch
        if not comparison.is_over and piece.offset < copying.expected:
            return None
        adopted = () if epochs.all or copying.is_empty else self._masters
        is_new = epoch.number > epochs.last_number and 0 <= epoch.start <= piece.offset
        if not adopted and not is_new:
            return None
        return asyncio.to_thread(self._keep, adopted, copying.expected, epoch if is_new else None)

    def _cut_damaged(self, error: DivergedError) -> None:
        """Have this log cut where a power loss may have changed it, if that is why it differs.

        Both logs have the same epochs up to its end: so the master's has what was written.

        Raises:
            MqlakeError: it is cut now, and the rest comes again from the master.
        """
        start = self._compare_from
        if error.at is None or start is None or error.at < start or not self._group.epochs.all:
            return
        if start < self._store.watermarks.min_offset:
            return
        self._group.cut(start)
        raise MqlakeError(
            f"the last records differ from the master's at physical offset {error.at}, as after a"
            f" power loss: they are cut off from {start} on, and copied again"
        ) from error

    def _keep(self, adopted: Sequence[Epoch], end: int, epoch: Epoch | None) -> None:
        epochs = self._group.epochs
        if adopted:
            epochs.adopt(adopted, end)
        if epoch is not None and epoch.number > epochs.last_number:
            epochs.append(epoch)

    def _take(self, piece: Piece, comparison: Comparison) -> None:
        try:
            super()._take(piece, comparison)
        except DivergedError as error:
            self._cut_damaged(error)
            raise
        confirmed = min(self._confirmed, self._store.watermarks.end)
        self._store.copies.note_confirmed(confirmed)
        self._store.copying.confirm()


def _text(epochs: tuple[Epoch, ...]) -> str:
    return " ".join(f"{each.number}-{each.start}" for each in epochs[-5:]) or "no epoch"
