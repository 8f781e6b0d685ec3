"""Light queues are a function of the log: live, after a crash, and derived again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import msgspec
import pytest

from mqlake.formats.light.light_queue_file import LightEntry
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from tests.store.light.lights import (
    SETTINGS,
    TOPIC,
    LightMessages,
    light_files,
    lights_of,
    name,
    open_store,
    read,
)


def fill(store: OwnedStore, sent: LightMessages, count: int, seed: int = 0) -> None:
    dice = random.Random(seed)
    for number in range(count):
        if number % 3 == 0:
            assert store.puts.put(Message("Other", b"INNER_MULTI_DISPATCH\x01%LMQ%x\x02")).is_ok
        sent.put(store, b"%d-%d" % (seed, number), [name(dice.randrange(20))])
        if number % 10 == 0:
            store.tick()
    store.tick()


def test_reads_what_was_put_from_any_offset(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    fill(store, sent, 300)
    sent.require(store)
    for queue, bodies in sent.bodies.items():
        for start in range(len(bodies) + 1):
            assert read(store, queue, start, 3) == bodies[start : start + 3]
        last = lights_of(store).last(TOPIC, queue.encode())
        assert last is not None
        assert last.queue_offset == len(bodies) - 1
    assert lights_of(store).last(TOPIC, b"%LMQ%$Parent$none") is None
    assert len(light_files(tmp_path)) > 3  # One file for each segment, and the mark.
    store.close()


def test_reads_a_long_queue_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=1 << 22)
    store, sent = open_store(tmp_path, settings), LightMessages()
    for number in range(2000):
        sent.put(store, b"%d" % number, [name(1)])
    store.tick()
    light = lights_of(store)
    file = next(light._files.files(TOPIC))  # pyright: ignore[reportPrivateUsage]
    steps = 0
    entry_of = file.entry

    def counted(number: int) -> LightEntry:
        nonlocal steps
        steps += 1
        return entry_of(number)

    monkeypatch.setattr(file, "entry", counted)
    assert [p.queue_offset for p in light.places(TOPIC, name(1).encode(), 7, 2)] == [7, 8]
    assert steps < 100


def test_a_record_may_belong_to_several_light_queues(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    sent.put(store, b"a", [name(1), name(2)])
    sent.put(store, b"b", [name(2)])
    sent.require(store)
    store.close()


def test_text_in_a_body_and_malformed_properties_make_no_entry(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for properties in (
        {"INNER_MULTI_DISPATCH": name(1)},
        {"INNER_MULTI_DISPATCH": name(1), "INNER_MULTI_QUEUE_OFFSET": "x"},
        {"INNER_MULTI_DISPATCH": name(1), "INNER_MULTI_QUEUE_OFFSET": "1,2"},
        {"INNER_MULTI_DISPATCH": "plain", "INNER_MULTI_QUEUE_OFFSET": "0"},
        {"INNER_MULTI_DISPATCH": name(1), "INNER_MULTI_QUEUE_OFFSET": "9" * 19},
        {"xINNER_MULTI_DISPATCH": name(1), "INNER_MULTI_QUEUE_OFFSET": "0"},
    ):
        body = b"INNER_MULTI_DISPATCH\x01%LMQ%x\x02INNER_MULTI_QUEUE_OFFSET\x010\x02"
        assert store.puts.put(Message(TOPIC, body, properties=properties)).is_ok
    store.tick()
    assert lights_of(store).topics() == []
    store.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_recovers_what_was_dispatched_before(tmp_path: Path, is_clean: bool) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    fill(store, sent, 100)
    store.durability.checkpoint()
    fill(store, sent, 50, seed=1)
    before = light_files(tmp_path)
    if is_clean:
        store.close()
    else:
        store.abandon()
    store = open_store(tmp_path)
    assert light_files(tmp_path) == before
    sent.require(store)
    fill(store, sent, 20, seed=2)
    sent.require(store)
    store.close()


def test_what_was_written_after_the_checkpoint_may_be_anything(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    fill(store, sent, 30)
    store.durability.checkpoint()
    marked = light_files(tmp_path)
    fill(store, sent, 60, seed=1)
    whole = light_files(tmp_path)
    store.abandon()
    for path, data in whole.items():
        if data and marked.get(path) != data:
            # The disk has an older header and older slots, and has lost the newest entries.
            end = len(data.rstrip(b"\0"))
            older = data[:28] + (1).to_bytes(4, "big") + bytes(8 + 16 * 4) + data[104:]
            lost = older[: end - 40] + bytes(len(data) - end + 40)
            (tmp_path / "lightqueue" / path).write_bytes(lost if path in marked else older)
    store = open_store(tmp_path)
    assert light_files(tmp_path) == whole
    sent.require(store)
    store.close()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_derives_them_again_byte_for_byte(tmp_path: Path, is_damaged: bool) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    fill(store, sent, 120)
    store.close()
    before = light_files(tmp_path)
    path = min(path for path in before if "/" in path)
    if is_damaged:
        (tmp_path / "lightqueue" / path).write_bytes(b"damaged" * 1000)
    else:
        (tmp_path / "lightqueue" / "complete").unlink()
    store = open_store(tmp_path)
    assert light_files(tmp_path) == before
    sent.require(store)
    store.close()


def test_derives_them_when_they_are_switched_on(tmp_path: Path) -> None:
    off = msgspec.structs.replace(SETTINGS, enable_lmq=False)
    store, sent = open_store(tmp_path, off), LightMessages()
    fill(store, sent, 60)
    store.close()
    store = open_store(tmp_path)
    sent.require(store)
    store.close()
    store = open_store(tmp_path, off)
    fill(store, sent, 10, seed=1)
    store.close()
    assert light_files(tmp_path) == {}
    store = open_store(tmp_path)
    sent.require(store)
    store.close()


def test_retention_removes_them_with_their_segments(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, max_commit_log_bytes=3 << 14)
    store, sent = open_store(tmp_path, settings), LightMessages()
    fill(store, sent, 600)
    store.durability.checkpoint()
    store.retention.clean()
    store.retention.check()
    while (job := store.retention.remove_next()) is not None:
        job.complete()
    assert store.log.min_offset > 0
    places = lights_of(store).places(TOPIC, name(3).encode(), 0, 1000)
    assert places
    assert min(place.physical_offset for place in places) >= store.log.min_offset
    assert read(store, name(3)) == sent.bodies[name(3)][-len(places) :]
    bases = [int(path.rpartition("/")[2]) for path in light_files(tmp_path) if "/" in path]
    assert min(bases) >= store.log.min_offset
    store.close()


def test_a_deleted_topic_takes_its_light_queues_along(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    fill(store, sent, 60)
    store.removal.remove(TOPIC)
    assert lights_of(store).last(TOPIC, name(1).encode()) is None
    assert [path for path in light_files(tmp_path) if "/" in path] == []
    again = LightMessages()
    fill(store, again, 10, seed=3)
    again.require(store)
    store.abandon()
    store = open_store(tmp_path)
    again.require(store)
    shutil.rmtree(tmp_path / "lightqueue")
    store.abandon()
    store = open_store(tmp_path)
    again.require(store)
    store.close()


def test_says_which_light_queues_have_got_messages(tmp_path: Path) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    seen: list[bytes] = []
    lights_of(store).notify(seen.extend)
    fill(store, sent, 5)
    assert sorted(seen) == sorted(
        queue.encode() for queue, bodies in sent.bodies.items() for _ in bodies
    )
    heads = [head for head in lights_of(store).heads(TOPIC) if head is not None]
    assert heads == list(dict.fromkeys(heads))
    assert len(heads) == len(sent.bodies)
    store.close()


@pytest.mark.parametrize("gap", [1, 2, 40, 1 << 40])
def test_gaps_of_offsets_are_skipped(tmp_path: Path, gap: int) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    queue, offsets = name(1), list[int]()
    for number in range(150):
        if number % 7 == 0:
            sent.next[queue] += gap
        offsets.append(sent.next[queue])
        sent.put(store, b"%d" % number + bytes(500), [queue])
    assert len(light_files_after(store, tmp_path)) > 3
    for at in range(150):
        for start in {offsets[at], offsets[at - 1] + 1 if at else 0}:
            for count in (1, 2, 32):
                assert read(store, queue, start, count) == sent.bodies[queue][at : at + count]
    assert read(store, queue, offsets[-1] + 1) == []
    store.close()


def light_files_after(store: OwnedStore, path: Path) -> dict[str, bytes]:
    store.tick()
    return light_files(path)


@pytest.mark.parametrize("size", [10, 6000])
def test_an_offset_that_is_not_above_the_newest_one_is_left_out(
    tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    for number in range(5):
        sent.put(store, b"%d" % number + bytes(size), [name(1)])
    for offset in ("0", "4"):
        properties = {
            "INNER_MULTI_DISPATCH": f"{name(1)},{name(2)}",
            "INNER_MULTI_QUEUE_OFFSET": f"{offset},{offset}",
        }
        assert store.puts.put(Message(TOPIC, b"late", properties=properties)).is_ok
    sent.put(store, b"5", [name(1)])
    assert read(store, name(1)) == sent.bodies[name(1)]
    assert read(store, name(2)) == [b"late", b"late"]
    last = lights_of(store).last(TOPIC, name(1).encode())
    assert last is not None
    assert last.queue_offset == 5
    assert caplog.text.count("is left out") == 1
    store.close()


@pytest.mark.parametrize("topic", ["RMQ_SYS_TRANS_HALF_TOPIC", "%RETRY%g", "%DLQ%g", "rmq_sys_x"])
def test_records_that_wait_or_are_copies_have_no_entry(tmp_path: Path, topic: str) -> None:
    store, sent = open_store(tmp_path), LightMessages()
    sent.put(store, b"x", [name(1, topic)], topic)
    store.tick()
    assert lights_of(store).topics() == []
    store.close()
