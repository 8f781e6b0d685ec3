from __future__ import annotations

import pytest

from mqlake.formats.kafka import control_record, record_batch, versions
from mqlake.formats.kafka.batch import Batch, Record
from mqlake.formats.kafka.control_record import ControlType, EndMarker
from mqlake.formats.kafka.producer_snapshot import ProducerEntry
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.formats.kafka.transaction_index import AbortedTransaction
from mqlake.kafka.errors import TransactionStateError
from mqlake.kafka.state.producer_state import ProducerState

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


class Log:
    """Batches given to a state, at offsets that go up by themselves."""

    def __init__(self, state: ProducerState | None = None) -> None:
        self.state = state or ProducerState()
        self.offset = self.state.end_offset

    def data(
        self, producer: int, count: int = 2, *, epoch: int = 0, in_transaction: bool = True
    ) -> AbortedTransaction | None:
        return self._give(
            record_batch.encode(
                self.offset,
                [NewRecord(1000 + self.offset)] * count,
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=40,
                is_transactional=in_transaction,
            )
        )

    def end(self, producer: int, kind: ControlType, epoch: int = 0) -> AbortedTransaction | None:
        return self._give(
            control_record.encode_end_marker(
                self.offset, 9000, EndMarker(kind, 6), producer_id=producer, producer_epoch=epoch,
                leader_epoch=0,
            )
        )  # fmt: skip

    def _give(self, data: bytes) -> AbortedTransaction | None:
        batch = versions.read_header(data, 0, 0, len(data))
        assert batch is not None

        def read(asked: Batch) -> list[Record]:
            return versions.decode_records(asked, data)

        aborted = self.state.update(batch, read)
        self.offset = batch.next_offset
        return aborted


def test_an_idempotent_producer() -> None:
    log = Log()
    log.data(7, 3, in_transaction=False)
    assert [ProducerEntry(7, 0, 42, 2, 2, 1000, -1, -1)] == list(log.state.producers.values())
    assert log.state.first_open_offset() is None


def test_producers_without_an_id_leave_no_trace() -> None:
    log = Log()
    log.data(-1, in_transaction=False)
    assert log.state.producers == {}
    assert log.state.end_offset == 2


def test_the_oldest_open_transaction_is_the_stable_end() -> None:
    log = Log()
    log.data(1)
    log.data(2)
    log.data(3)
    assert log.state.first_open_offset() == 0
    assert log.end(2, ABORT) == (2, 2, 6, 0)
    assert log.end(1, COMMIT) is None
    assert log.state.first_open_offset() == 4
    assert log.end(3, ABORT) == (3, 4, 8, 9)
    assert log.state.first_open_offset() is None


def test_a_marker_without_a_transaction() -> None:
    log = Log()
    assert log.end(5, ABORT) is None
    assert [ProducerEntry(5, 0, -1, -1, 0, 9000, 6, -1)] == list(log.state.producers.values())


def test_a_marker_of_a_later_epoch_forgets_the_data() -> None:
    log = Log()
    log.data(5)
    log.end(5, COMMIT, epoch=1)
    assert [ProducerEntry(5, 1, -1, -1, 0, 9000, 6, -1)] == list(log.state.producers.values())
    log.data(5, epoch=1)
    log.end(5, COMMIT, epoch=1)
    assert [ProducerEntry(5, 1, 41, 4, 1, 9000, 6, -1)] == list(log.state.producers.values())


def test_plain_data_in_the_middle_of_a_transaction() -> None:
    log = Log()
    log.data(5)
    with pytest.raises(TransactionStateError, match="outside of the transaction"):
        log.data(5, in_transaction=False)


def test_a_snapshot_goes_on() -> None:
    entries = [
        ProducerEntry(1, 0, 5, 90, 0, 1, 2, 80),
        ProducerEntry(2, 0, 5, 91, 0, 1, 2, 70),
        ProducerEntry(3, 0, 5, 92, 0, 1, 2, -1),
    ]
    log = Log(ProducerState(entries, 100))
    assert log.state.first_open_offset() == 70
    assert log.end(1, ABORT) == (1, 80, 100, 70)
    assert log.end(2, ABORT) == (2, 70, 101, 102)


@pytest.mark.timeout(60)
def test_many_open_transactions_take_no_quadratic_time() -> None:
    count = 20_000
    entries = [ProducerEntry(n, 0, 0, n, 0, 0, 0, n) for n in range(count)]
    log = Log(ProducerState(entries, count))
    for producer in range(count):
        aborted = log.end(producer, ABORT)
        following = producer + 1 if producer + 1 < count else log.offset
        assert aborted == (producer, producer, count + producer, following)
