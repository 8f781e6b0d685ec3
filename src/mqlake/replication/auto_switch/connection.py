"""One slave of a master under a controller: its handshake, its reports, and the log sent to it.

Upstream: `AutoSwitchHAConnection`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from mqlake.protocol.replication.auto_switch import (
    Handshake,
    HandshakeAnswer,
    SlaveReader,
    encode_answer,
    encode_head,
)
from mqlake.remoting.memory_budget import MemoryBudget
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.ha_connection import EndedError, HaConnection
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.live_settings import Current
from mqlake.store.port import Store

_log = logging.getLogger(__name__)


class AutoSwitchConnection(HaConnection):
    """Sends the log to one slave until the connection ends; each frame belongs to one epoch.

    Args:
        greeted: called with this connection after the handshake.
        acknowledged_more: called after each report.
        caught_up, admit, budget: see `HaConnection`.

    Attributes:
        broker_id: the slave's id; None before its handshake.
        is_learner: whether the slave never joins the in-sync set.
        caught_up_at: loop time at which the slave last had the whole log.
    """

    def __init__(
        self,
        settings: Current[ReplicationSettings],
        store: Store,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: str,
        group: Group,
        *,
        greeted: Callable[[AutoSwitchConnection], object],
        acknowledged_more: Callable[[], object],
        caught_up: Callable[[], object],
        admit: Callable[[HaConnection], str | None],
        budget: MemoryBudget | None = None,
    ) -> None:
        super().__init__(
            settings,
            store,
            reader,
            writer,
            address,
            caught_up=caught_up,
            admit=admit,
            budget=budget,
        )
        self._group, self._messages = group, SlaveReader()
        self._from_last_file = False
        self._mark = store.copying.end, self._loop.time()
        self.is_learner = False
        self.caught_up_at = self._loop.time()
        self._greeted, self._acknowledged_more = greeted, acknowledged_more

    @property
    def is_in_sync(self) -> bool:
        """Whether the slave may be elected."""
        in_sync_set = self._store.copies.in_sync_set
        return in_sync_set is not None and self.broker_id in in_sync_set.members

    def _offsets(self, data: bytes) -> list[int]:
        offsets: list[int] = []
        for message in self._messages.feed(data):
            if isinstance(message, Handshake):
                self._greet(message)
            else:
                offsets.append(message)
        return offsets[:1] + offsets[1:][-1:]

    def _greet(self, handshake: Handshake) -> None:
        if self.broker_id is not None:
            raise EndedError("it sends a second handshake")
        self.broker_id, self.is_learner = handshake.broker_id, handshake.is_learner
        self._from_last_file = handshake.from_last_file
        _log.info("slave %s: is broker %d", self.address, self.broker_id)
        self._greeted(self)
        answer = HandshakeAnswer(self._store.copying.end, self._group.epochs.all)
        self._writer.write(encode_answer(answer))

    def _start_of(self, wanted: int) -> int:
        """Return the physical offset of the first byte to send: 0 asks for the first file."""
        if wanted == 0 and not self._from_last_file:
            return self._store.watermarks.min_offset
        return super()._start_of(wanted)

    def _begin(self, wanted: int) -> None:
        if self.broker_id is None:
            raise EndedError("it reports before its handshake")
        super()._begin(wanted)

    def _acknowledge(self, offsets: Sequence[int]) -> None:
        super()._acknowledge(offsets)
        self._note_caught_up()
        self._store.copying.confirm()
        self._acknowledged_more()

    def _note_caught_up(self) -> None:
        """Note when the slave had everything: under load it always lacks the newest bytes."""
        end, now = self._store.copying.end, self._loop.time()
        marked_end, marked_at = self._mark
        if self.acknowledged >= end:
            self.caught_up_at = now
        elif self.acknowledged >= marked_end:
            self.caught_up_at = marked_at
        if self.acknowledged >= marked_end:
            self._mark = end, now

    def _put_frame(self, data: memoryview) -> None:
        if not data:
            super()._put_frame(data)
        epochs = self._group.epochs
        while data:
            epoch = epochs.at(self.transferred_from)
            end = epochs.end_of(epoch) if epoch is not None else None
            size = len(data) if end is None else min(len(data), end - self.transferred_from)
            super()._put_frame(data[:size])
            data = data[size:]

    def _head(self, offset: int, size: int) -> bytes:
        epoch = self._group.epochs.at(offset) or self._group.epochs.all[0]
        return encode_head(offset, size, epoch, self._store.watermarks.confirmed)
