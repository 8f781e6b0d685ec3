"""Producers and transactions of a partition, from a snapshot and the batches after it.

Upstream: `UnifiedLog.rebuildProducerState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from mqlake.errors import FormatError
from mqlake.formats.kafka.producer_snapshot import decode
from mqlake.formats.kafka.transaction_index import AbortedTransaction
from mqlake.kafka.log.segment import LogSegment
from mqlake.kafka.state.producer_state import ProducerState


class ProducerReplay:
    """The state of a partition's producers at an offset, and how to bring it forward.

    Attributes:
        state: producers and open transactions.
        aborted: the transactions that ended while it was brought forward.
    """

    def __init__(
        self, snapshots: Iterable[int], read: Callable[[int], bytes], at_most: int, start: int
    ) -> None:
        """Take the latest readable snapshot, not above the offset `at_most`, else none.

        `read` gives a snapshot's bytes by its offset; without one, the state begins empty at the
        offset `start`.
        """
        self.aborted: list[AbortedTransaction] = []
        self.state = ProducerState(end_offset=start)
        for offset in sorted((offset for offset in snapshots if offset <= at_most), reverse=True):
            try:
                self.state = ProducerState(decode(read(offset)), offset)
            except FormatError:
                # Kafka removes such a snapshot and takes the one before.
                continue
            return

    def forward(self, segments: Sequence[LogSegment], end: int) -> None:
        """Take in the batches of `segments`, as far as they are below the offset `end`.

        Raises:
            FormatError: a transaction's end that cannot be read.
            TransactionStateError: a plain batch in the middle of its producer's transaction.
        """
        bases = [segment.base_offset for segment in segments] + [end]
        for segment, following in zip(segments, bases[1:], strict=True):
            if following <= self.state.end_offset:
                continue
            place = segment.translate_offset(self.state.end_offset)
            if place is None:
                continue
            batches = segment.log.batches(place.position)
            for batch in takewhile(lambda batch: batch.base_offset < end, batches):
                aborted = self.state.update(batch, segment.log.records)
                if aborted is not None:
                    self.aborted.append(aborted)
