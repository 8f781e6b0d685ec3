"""The numbers of docs/architecture.md are those of formats, settings and a running broker."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from mqlake.broker.broker import Broker
from mqlake.client.message import Message
from mqlake.formats import consume_queue, index_file, record
from mqlake.store.core import durability
from mqlake.store.settings import StoreSettings
from mqlake.testing import RunningBroker, broker
from tests.documents.pages import ROOT

_ROW = re.compile(r"^\| \**([^|*]+?)\** \| ([\d,]+) \| (.*?) ?\|$", re.MULTILINE)
_TOPIC, _BODY = "orders", b"x" * 1024


def text() -> str:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.partition("## Cost in numbers\n")[2].partition("\n## ")[0]


def numbers() -> dict[str, int]:
    """Return the bytes in the tables, by the first column."""
    return {what: int(size.replace(",", "")) for what, size, _ in _ROW.findall(text())}


def test_the_sizes_of_a_message_are_those_that_a_broker_stores() -> None:
    with broker() as running, running.producer() as producer:
        producer.send(Message(topic=_TOPIC, body=_BODY, tags="new", keys="order-1"))
        size, keys = _stored(running)
    found, parts = numbers(), ("fields of the record", "topic", "properties", "body")
    assert found["fields of the record"] == record.MIN_SIZE
    assert found["topic"] == len(_TOPIC)
    assert found["body"] == len(_BODY)
    assert found["record"] == size
    assert sum(found[part] for part in parts) == size
    assert found["consume-queue entry"] == consume_queue.ENTRY_SIZE
    assert found["index entries"] == keys * index_file.ENTRY_SIZE
    derived = found["consume-queue entry"] + found["index entries"]
    assert found["written in all"] == size + derived
    assert f"{size - len(_BODY)} bytes more than the body" in text()
    assert f"{(size + derived) / len(_BODY):.2f} times the body" in text()


def _stored(running: RunningBroker) -> tuple[int, int]:
    """Return the size of the topic's only record, and how many keys are in the index."""

    async def size(running: Broker) -> int:
        core = running.state.store.core
        core.durability.sync_log()
        core.durability.checkpoint()
        queues = core.reads.queues(_TOPIC)
        (found,) = (each for queue in queues for each in core.reads.get(_TOPIC, queue, 0).records)
        return found.size

    stored = running.call(size)
    (file,) = Path(running.store, "index").iterdir()
    # The first entry of a file is unused, and counted.
    return stored, index_file.decode_header(file.read_bytes()[:40]).index_count - 1


def test_the_sizes_of_files_are_the_defaults() -> None:
    found, settings = numbers(), StoreSettings()
    assert found["segment of the log"] == settings.mapped_file_size_commit_log
    assert found["queue file"] == settings.mapped_file_size_consume_queue
    entries = settings.mapped_file_size_consume_queue // consume_queue.ENTRY_SIZE
    assert f"{entries:,} entries" in text()
    slots, most = settings.max_hash_slot_num, settings.max_index_num
    assert found["index file"] == index_file.file_size(slots, most)
    held = f"{most - 1:,} entries, {slots:,} slots of {index_file.SLOT_SIZE} bytes"
    assert held in text()
    messages = found["segment of the log"] // found["record"]
    assert f"about {messages // 10_000 * 10_000:,} such messages" in text()
    assert f"reads {32 * consume_queue.ENTRY_SIZE} consecutive bytes" in text()


def test_the_intervals_are_the_defaults() -> None:
    now, page = StoreSettings(), 4096
    queues = now.flush_consume_queue_least_pages * page >> 10
    log = now.flush_commit_log_least_pages * page >> 10
    assert now.flush_interval_consume_queue == 1000
    assert f"have {queues} KiB of them on average" in text()
    assert f"or {durability._MOST_TO_READ >> 20} MiB of the log came" in text()
    assert f"every {now.flush_consume_queue_thorough_interval // 1000} seconds" in text()
    assert f"every {now.flush_interval_commit_log} ms if {log} KiB wait" in text()
    assert f"every {now.flush_commit_log_thorough_interval // 1000} seconds (" in text()


def test_the_layers_are_those_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract, *_ = project["tool"]["importlinter"]["contracts"]
    wanted = [set(re.findall(r"mqlake\.(\w+)", line)) for line in contract["layers"]]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("## Layers\n")[2].split("```")[1]
    listed = [re.split(r"  +", line)[0] for line in block.strip().splitlines()]
    assert [set(line.split(" · ")) for line in listed] == wanted
