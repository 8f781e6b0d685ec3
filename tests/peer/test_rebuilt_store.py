"""The real RocketMQ opens stores whose derived files mqlake made, and finds everything in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.formats.dialect import Dialect
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from tests import golden
from tests.golden import CLEAN, TORN_VARIANTS, GoldenStore
from tests.jobs.model import index_files, read_index_files, read_log, read_queue_files
from tests.peer import answers
from tests.peer.answers import Message
from tests.peer.rocketmq_store import RocketMQ

pytestmark = [pytest.mark.peer]

DERIVED = ("consumequeue", "index", "checkpoint")
DIALECTS = {"rmq49-clean": Dialect.V4_9, "rmq533-clean": Dialect.V5_3}
QUEUE_FILE_SIZE, SLOTS, MAX_ENTRIES = 20_000, 1000, 4000
SMALL = {
    "mappedFileSizeCommitLog": golden.SEGMENT_SIZE,
    "mappedFileSizeConsumeQueue": QUEUE_FILE_SIZE,
    "maxHashSlotNum": SLOTS,
    "maxIndexNum": MAX_ENTRIES,
}


@pytest.mark.parametrize("name", [name for name in CLEAN if name != "rmq5-default"])
def test_a_store_that_had_its_log_only(name: str, tmp_path: Path, rocketmq: RocketMQ) -> None:
    given = golden.store(name)
    store = without_derived_files(given, tmp_path)
    dialect = DIALECTS.get(name, Dialect.V5_5)
    rebuild(
        store,
        LocalEngine(2),
        dialect=dialect,
        queue_file_size=QUEUE_FILE_SIZE,
        hash_slots=SLOTS,
        max_index=MAX_ENTRIES,
    )
    indexes = read_index_files(store)

    check_opened(rocketmq, store, SMALL, given.messages(), dialect, given)

    assert read_index_files(store) == indexes


def test_a_store_of_default_sizes(tmp_path: Path, rocketmq: RocketMQ) -> None:
    given = golden.store("rmq5-default")
    store = without_derived_files(given, tmp_path)
    rebuild(store, LocalEngine(2))
    indexes = read_index_files(store)

    check_opened(rocketmq, store, {}, given.messages(), Dialect.V5_5, given)

    assert read_index_files(store) == indexes


@pytest.mark.parametrize(
    "name",
    ["rmq5-killed", *(pytest.param(each, marks=pytest.mark.nightly) for each in TORN_VARIANTS)],
)
def test_a_store_that_was_killed(name: str, tmp_path: Path, rocketmq: RocketMQ) -> None:
    given = golden.store(name)
    store = given.copy(tmp_path / "store")
    rebuild(store, LocalEngine(2))
    assert (store / "abort").exists()
    end = given.recovery()["afterDispatch"]["commitLogMaxOffset"]
    killed = golden.store("rmq5-killed").messages()
    messages = [each for each in killed if each["physicalOffset"] < end]
    asked = given if name in golden.NAMES else None

    # A recovery after a crash indexes the last message once more, and keeps all else.
    check_opened(rocketmq, store, SMALL, messages, Dialect.V5_5, asked, messages[-1:])

    records = list(read_log(store, end))
    again = index_files([*records, records[-1]], SLOTS, MAX_ENTRIES, Dialect.V5_5)
    assert read_index_files(store) == again


def without_derived_files(given: GoldenStore, directory: Path) -> Path:
    store = given.copy(directory / "store")
    for name in DERIVED:
        path = store / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return store


def check_opened(
    rocketmq: RocketMQ,
    store: Path,
    settings: dict[str, int],
    messages: list[Message],
    dialect: Dialect,
    asked: GoldenStore | None,
    indexed_again: list[Message] | None = None,
) -> None:
    """Open the store, ask for all messages, and for the times that a golden store has answers to.

    What was in its queue files, and the names of its index files, must be there afterwards.
    """
    queues = read_queue_files(store)
    names = sorted(path.name for path in (store / "index").iterdir())
    last = messages[-1]

    rocketmq.open(store, settings)
    try:
        bounds = rocketmq.bounds()
        answers.check(rocketmq, messages)
        answers.check_keys(rocketmq, [*messages, *(indexed_again or [])], dialect)
        if asked is not None:
            check_times(rocketmq, asked)
    finally:
        rocketmq.shut_down()

    assert bounds["minOffset"] == 0
    assert bounds["maxOffset"] == last["physicalOffset"] + last["size"]
    assert read_queue_files(store) == queues
    assert sorted(path.name for path in (store / "index").iterdir()) == names


def check_times(rocketmq: RocketMQ, asked: GoldenStore) -> None:
    known = [each for each in asked.queries()["getOffsetInQueueByTime"] if "LOWER" in each]
    for boundary in ("LOWER", "UPPER"):
        questions = [(q["topic"], q["queueId"], q["timestamp"], boundary) for q in known]
        assert rocketmq.by_time(questions) == [each[boundary] for each in known]
