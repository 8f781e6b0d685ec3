"""The format pages: their bytes are real, and mean what the pages say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats import (
    abort_file,
    batch_consume_queue,
    checkpoint,
    config,
    consume_queue,
    consume_queue_ext,
    fastjson,
    file_name,
    host,
    index_file,
    java_string,
    message_id,
    message_json,
    properties,
    record,
    sys_flag,
)
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.formats.golden_log import record_bytes
from tests.formats.hex_blocks import PAGES, ROOT, HexBlock, hex_blocks

MODULES = ROOT / "src" / "mqlake" / "formats"
PAGE_NAMES = sorted(path.name for path in PAGES.glob("*.md") if path.name != "README.md")
WITHOUT_HEX = {
    "archive_manifest.md",
    "epoch_file.md",
    "incarnations.md",
    "light_queue_file.md",
    "replication.md",
    "message_batch.md",
    "message_json.md",
    "timer_checkpoint.md",
    "timer_log.md",
}
INT = int.from_bytes

Values = dict[str, Any]


def record_values(data: bytes) -> Values:
    if len(data) == record.FRAME_SIZE:
        return {"size": INT(data[:4], "big"), "magic": f"0x{data[4:].hex().upper()}"}
    message = record.decode(data)
    _, layout = record.check(data, 0, len(data))
    assert layout
    return {name: getattr(message, name) for name in message.__struct_fields__} | {
        "magic": f"0x{data[4:8].hex().upper()}",
        "body": message.body.decode(),
        "body length": layout.body_length,
        "topic length": layout.topic_length,
        "properties length": layout.properties_length,
        "properties": " ".join(f"{name}={value}" for name, value in message.properties.items()),
    }


def message_id_values(data: bytes) -> Values:
    if len(data) == 8:
        return {"store_host": host.decode_host(data), "physical_offset": INT(data, "big")}
    key = message_id.UniqueKey.parse(data.decode())
    return key._asdict() | {"ip": key.ip.hex()}


def text_values(data: bytes) -> Values:
    text = java_string.decode(data)
    return {"text": text, "hash_code": java_string.hash_code(text)}


def topic_values(data: bytes) -> Values:
    return {"topic": file_name.check_topic_name(data.decode())}


def queue_values(data: bytes) -> Values:
    return {
        f"{at // consume_queue.ENTRY_SIZE}.{name}": value
        for at in range(0, len(data), consume_queue.ENTRY_SIZE)
        for name, value in consume_queue.decode(data, at)._asdict().items()
    }


def queue_ext_values(data: bytes) -> Values:
    if len(data) == consume_queue.ENTRY_SIZE:
        entry = consume_queue.decode(data)
        return entry._asdict() | {
            "address_offset": consume_queue_ext.address_offset(entry.tags_code)
        }
    found: Values = {}
    for at, unit in consume_queue_ext.walk(data):
        found |= {f"{at}.{name}": value for name, value in unit._asdict().items()}
        found[f"{at}.filter_bit_map"] = unit.filter_bit_map.hex()
        found["map size"] = len(unit.filter_bit_map)
    return found


def index_values(data: bytes) -> Values:
    if len(data) == index_file.SLOT_SIZE:
        return {"slot": index_file.SLOT.unpack(data)[0]}
    if len(data) == index_file.ENTRY_SIZE:
        return index_file.IndexEntry(*index_file.ENTRY.unpack(data))._asdict()
    return index_file.decode_header(data)._asdict()


def flatten(value: object, prefix: str = "") -> Values:
    """Return the leaves of dicts under their keys joined by dots."""
    if not isinstance(value, dict):
        return {prefix.removesuffix("."): value}
    found: Values = {}
    for key, item in value.items():
        found |= flatten(item, f"{prefix}{key}.")
    return found


def config_values(data: bytes) -> Values:
    metrics = config.decode(data, config.TransactionMetrics)
    counts = {f"transaction_count.{t}.count": m.count for t, m in metrics.transaction_count.items()}
    return counts | {"data_version.counter": metrics.data_version.counter}


def command_values(data: bytes) -> Values:
    (command,) = FrameReader(Limits()).feed(data)
    return {name: getattr(command, name) for name in command.__struct_fields__} | command.fields


DECODED: dict[str, Callable[[bytes], Values]] = {
    "record.md": record_values,
    "sys_flag.md": lambda data: {"describe": sys_flag.describe(INT(data, "big"))},
    "host.md": lambda data: {"host": host.decode_host(data)},
    "properties.md": properties.decode_properties,
    "java_string.md": text_values,
    "message_id.md": message_id_values,
    "file_name.md": topic_values,
    "consume_queue.md": queue_values,
    "consume_queue_ext.md": queue_ext_values,
    "batch_consume_queue.md": lambda data: batch_consume_queue.decode(data)._asdict(),
    "index_file.md": index_values,
    "checkpoint.md": lambda data: checkpoint.decode(data)._asdict(),
    "abort_file.md": lambda data: {"pid": abort_file.decode(data)},
    "fastjson.md": lambda data: flatten(fastjson.loads(data)),
    "config.md": config_values,
    "remoting.md": command_values,
}


def all_blocks() -> Iterable[tuple[str, HexBlock]]:
    for page in PAGE_NAMES:
        for block in hex_blocks(page):
            yield page, block


def test_every_page_has_an_example() -> None:
    assert {page for page, _ in all_blocks()} == set(PAGE_NAMES) - WITHOUT_HEX == set(DECODED)


@pytest.mark.parametrize("page", DECODED)
def test_example_bytes_are_those_of_the_file(page: str) -> None:
    for block in hex_blocks(page):
        assert block.data.hex(" ") == block.real_bytes().hex(" ")


@pytest.mark.parametrize("page", DECODED)
def test_example_bytes_mean_what_the_page_says(page: str) -> None:
    for block in hex_blocks(page):
        decoded = DECODED[page](block.data)
        assert block.values
        assert block.values == {name: str(decoded[name]) for name in block.values}


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_page_and_module_name_each_other(page: str) -> None:
    text = (PAGES / page).read_text(encoding="utf-8")
    pattern = r"^Modules?: `(src/mqlake/(?:formats|protocol)/[\w./]+)`\.$"
    named = re.search(pattern, text, re.MULTILINE)
    assert named
    module = ROOT / named[1]
    files = sorted(module.glob("*.py")) if module.is_dir() else [module]
    for file in files:
        first = file.read_text(encoding="utf-8").partition("\n\n")[0]
        assert f"(docs/formats/{page})" in first, file


def test_every_module_has_a_page() -> None:
    pages = set(PAGE_NAMES)
    for path in MODULES.glob("*.py"):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        named = re.search(r"docs/formats/(\w+\.md)", first)
        assert path.name == "__init__.py" or (named and named[1] in pages), path


def test_links_lead_somewhere() -> None:
    for path in [PAGES / "README.md", *(PAGES / page for page in PAGE_NAMES)]:
        for target in re.findall(r"\]\(([\w/.]+)(?:#\w+)?\)", path.read_text(encoding="utf-8")):
            assert (PAGES / target).exists(), (path.name, target)
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({page})" in text for page in PAGE_NAMES)


def test_config_page_lists_every_file() -> None:
    text = (PAGES / "config.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w[\w.]+) \| .* \| (\w+\.py) \|$", text, re.MULTILINE))
    assert rows == {
        name: Path(kind.__module__.replace(".", "/")).name + ".py"
        for name, kind in config.KINDS.items()
    }


def test_record_page_lists_faults_in_the_order_of_the_verdict() -> None:
    text = (PAGES / "record.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([A-Z]+) \| ", text, re.MULTILINE)
    assert set(listed) == {fault.name for fault in record.Fault}
    order = (record.check.__doc__ or "").replace("\n", " ")
    positions = [order.index(f"{name}") for name in listed if name not in ("OFFSET", "TORN")]
    assert positions == sorted(positions)


def test_sys_flag_page_lists_every_bit() -> None:
    text = (PAGES / "sys_flag.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| (\d+) \| (\w+) \|", text, re.MULTILINE)
    constants = {name: value for name, value in vars(sys_flag).items() if name.isupper()}
    listed = {name: int(value) for value, name in rows}
    masks = {"TRANSACTION_MASK", "COMPRESSION_TYPE_MASK", "TRANSACTION_NONE"}
    assert listed == {
        name: value
        for name, value in constants.items()
        if name not in masks and not name.startswith("_")
    }


def test_java_string_table() -> None:
    text = (PAGES / "java_string.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([0-9a-f ]+)` \| (\d) \| (\d) \|$", text, re.MULTILINE)
    assert len(rows) == 7
    for digits, in_java, in_python in rows:
        data = bytes.fromhex(digits)
        assert java_string.decode(data) == "\ufffd" * int(in_java)
        assert data.decode("utf-8", "replace") == "\ufffd" * int(in_python)


def test_file_name_table() -> None:
    text = (PAGES / "file_name.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\d+)` \| (\w+) \| (\d*) ?\|$", text, re.MULTILINE)
    assert {kind for _, kind, _ in rows} == {"segment", "index", "nothing"}
    for name, kind, value in rows:
        segment, index = file_name.parse_segment_name(name), file_name.parse_index_name(name)
        expected = int(value) if value else None
        assert (segment, index) == (
            expected if kind == "segment" else None,
            expected if kind == "index" else None,
        )


def test_message_ids_of_the_text() -> None:
    text = (PAGES / "message_id.md").read_text(encoding="utf-8")
    stored, offset, key = (block.data for block in hex_blocks("message_id.md"))
    assert f"`{message_id.encode_message_id(stored, INT(offset, 'big'))}`" in text
    assert f"`{key.decode()}`" in text


def test_index_page_tells_of_one_chain() -> None:
    text = (PAGES / "index_file.md").read_text(encoding="utf-8")
    value = java_string.index_key_hash(index_file.index_key("TopicTags", "Aa"))
    assert f"hash {value}" in text
    assert value == java_string.index_key_hash(index_file.index_key("TopicTags", "BB"))
    _, slot, newer, older = hex_blocks("index_file.md")
    assert slot.at == index_file.slot_at(1000, value)
    assert f"entry {slot.values['slot']}:" in text
    assert newer.at == index_file.entry_at(1000, 60)
    assert older.at == index_file.entry_at(1000, int(newer.values["previous"]))


def test_message_json_example() -> None:
    text = (PAGES / "message_json.md").read_text(encoding="utf-8")
    example = json.loads(text.partition("```json\n")[2].partition("```")[0])
    block = hex_blocks("record.md")[0]
    assert example == message_json.to_json(record.decode(block.data))
    names = re.findall(r"^\| ([a-zA-Z, ]+) \| (?:number|string|object) \|", text, re.MULTILINE)
    assert ", ".join(names).split(", ") == sorted(example, key=", ".join(names).split(", ").index)
    assert set(", ".join(names).split(", ")) == set(example)


def test_layout_tables_add_up() -> None:
    ends = {
        "consume_queue.md": consume_queue.ENTRY_SIZE,
        "batch_consume_queue.md": batch_consume_queue.UNIT_SIZE,
        "checkpoint.md": checkpoint.SIZE,
    }
    for page, size in ends.items():
        text = (PAGES / page).read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| (\d+) \| ", text, re.MULTILINE)
        end = 0
        for at, length in rows:
            assert int(at) == end, (page, at)
            end += int(length)
        assert end == size


def test_record_layout_offsets() -> None:
    text = (PAGES / "record.md").read_text(encoding="utf-8")
    rows = {
        name: int(at)
        for at, name in re.findall(r"^\| (\d+) \| \w+ \| ([\w ]+) \|", text, re.MULTILINE)
    }
    assert rows == {
        "size": 0,
        "magic": record.MAGIC_AT,
        "body CRC": record.BODY_CRC_AT,
        "queue id": record.QUEUE_ID_AT,
        "flag": record.FLAG_AT,
        "queue offset": record.QUEUE_OFFSET_AT,
        "physical offset": record.PHYSICAL_OFFSET_AT,
        "system flag": record.SYS_FLAG_AT,
        "born timestamp": record.BORN_TIMESTAMP_AT,
        "born host": record.BORN_HOST_AT,
    }


def test_a_record_of_the_golden_log_is_the_example() -> None:
    block = hex_blocks("record.md")[0]
    assert record_bytes("rmq5-clean", block.at, len(block.data)) == block.data
