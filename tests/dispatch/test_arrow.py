from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mqlake.dispatch import adjacent
from mqlake.dispatch.arrow import FIELDS, SCHEMA, to_arrow
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.dispatch.value_columns import BITS, Times
from mqlake.errors import MqlakeError
from mqlake.formats import java_string, message_json, properties, record
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryFile
from mqlake.storage.protocol import ReadableFile
from tests.dispatch.logs import log, random_log
from tests.golden import store


def rows(
    file: ReadableFile, kernel: Kernel, base: int = 0, columns: list[str] = SCHEMA.names
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    scan = SegmentScan(
        file,
        base,
        base,
        base + file.size,
        exact=True,
        want=Want.EXPORT,
        window=1 << 18,
        kernel=kernel,
    )
    for batch in scan:
        part = to_arrow(batch, columns, kernel)
        part.validate(full=True)
        assert part.schema.names == columns
        found += part.to_pylist(maps_as_pydicts="strict")
    return found


def expected(data: bytes, at: int) -> dict[str, Any]:
    """Return a record as JSON says it, but for the body and the times."""
    decoded = record.decode(data, at)
    values = message_json.to_json(decoded)
    return values | {"body": decoded.body, "tags": decoded.tags, "keys": decoded.keys}


def milliseconds(row: dict[str, Any]) -> dict[str, Any]:
    times = ("bornTimestamp", "storeTimestamp")
    return row | {name: round(row[name].timestamp() * 1000) for name in times}


@pytest.mark.parametrize("seed", range(8))
def test_columns_are_those_of_the_json_form(seed: int, kernel: Kernel) -> None:
    data = random_log(seed, 80)
    found = rows(MemoryFile(data), kernel)
    assert len(found) == 80
    for row in found:
        wanted = expected(data, row["physicalOffset"])
        assert wanted == milliseconds(row)
        assert list(wanted["properties"].items()) == list(row["properties"].items())


def test_golden_columns(kernel: Kernel) -> None:
    directory = LocalDirectory(store("rmq5-clean").path)
    name = directory.names("commitlog")[0]
    file, base = directory.open(f"commitlog/{name}"), int(name)
    data = file.read(0, file.size)
    for row in rows(file, kernel, base):
        assert expected(data, row["physicalOffset"] - base) == milliseconds(row)


@pytest.mark.parametrize(
    "data",
    [
        b"\xed\xa0\x80\x01a\x02TAGS\x01\xff\x02KEYS\x01a \xf0\x90 b",
        b"\xff\x01a\x02\xfe\x01b\x02",
        b"a\x01b\x02a\x01c\x02b\x01d\x02a\x01e",
        b"a\x01\x01b\x02\x01c\x02d\x01\x02e",
        b"",
        b"\x02" * 100,
        b"".join(b"%d\x01v\x02" % (number % 700) for number in range(3000)),
    ],
)
def test_odd_properties(data: bytes, kernel: Kernel) -> None:
    encoded = log([{"properties": data}, {"properties": {"x": "y"}}])
    row, other = rows(MemoryFile(encoded), kernel)
    decoded = record.decode(encoded)
    assert row["properties"] == properties.decode_properties(data)
    assert row["tags"] == decoded.tags
    assert row["keys"] == decoded.keys
    assert other["properties"] == {"x": "y"}


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_as_properties(seed: int, kernel: Kernel) -> None:
    chance = random.Random(seed)
    fields = [
        {
            "properties": bytes(
                chance.choices(b"\x01\x02TAGSKEYab \xff\xe0\xed\xa0\x80", k=chance.randrange(120))
            )
        }
        for _ in range(20)
    ]
    found = rows(MemoryFile(log(fields)), kernel, columns=["properties", "tags", "keys"])
    for row, each in zip(found, fields, strict=True):
        wanted = properties.decode_properties(each["properties"])
        assert row["properties"] == wanted
        assert row["tags"] == wanted.get("TAGS")
        assert row["keys"] == properties.key_list(wanted)


def test_hosts(kernel: Kernel) -> None:
    hosts = [
        "0.0.0.0:0",
        "255.255.255.255:4294967295",
        "[0:0:0:0:0:0:0:0]:1",
        "[ffff:f:ff:fff:ffff:1000:100:10]:4294967295",
    ]
    data = log({"born_host": born, "store_host": stored} for born in hosts for stored in hosts)
    found = rows(MemoryFile(data), kernel, columns=["storeHost", "bornHost", "msgId"])
    assert [(row["bornHost"], row["storeHost"]) for row in found] == [
        (born, stored) for born in hosts for stored in hosts
    ]


def test_only_the_chosen_columns(kernel: Kernel) -> None:
    data = log([{"body": b"b"}])
    assert rows(MemoryFile(data), kernel, columns=["body", "size"]) == [
        {"body": b"b", "size": len(data)}
    ]


def test_copies_stay_valid(kernel: Kernel) -> None:
    data = log({"body": b"%d" % number} for number in range(50))
    scan = SegmentScan(
        MemoryFile(data), 0, 0, len(data), exact=True, window=len(data) // 3, kernel=kernel
    )
    parts = [to_arrow(batch, ["body", "size"], kernel) for batch in scan]
    bodies = [body.as_py() for part in parts for body in part.column("body")]
    assert bodies == [b"%d" % number for number in range(50)]


def test_unknown_column(kernel: Kernel) -> None:
    (batch,) = SegmentScan(MemoryFile(data := log([{}])), 0, 0, len(data), exact=True)
    with pytest.raises(MqlakeError, match="no column 'colour'"):
        to_arrow(batch, ["colour"], kernel)


def test_malformed_tags_are_replaced_as_in_java(kernel: Kernel) -> None:
    data = log([{"properties": b"TAGS\x01\xed\xa0\x80"}, {"properties": b""}])
    found = rows(MemoryFile(data), kernel, columns=["tags"])
    assert [row["tags"] for row in found] == [java_string.decode(b"\xed\xa0\x80"), None]


def test_the_unique_key_is_a_column_only_where_it_is_asked_for(kernel: Kernel) -> None:
    properties_of = [{"UNIQ_KEY": "7F00"}, {"KEYS": "k"}, {}]
    data = log({"properties": found} for found in properties_of)
    found = rows(MemoryFile(data), kernel, columns=["uniqKey", "queueId"])
    assert [row["uniqKey"] for row in found] == ["7F00", None, None]
    assert "uniqKey" not in SCHEMA.names


def test_columns_of_a_single_record_stay_when_the_scan_goes_on(kernel: Kernel) -> None:
    """A column of one value is in one piece already, so that a copy could be forgotten."""
    data = log({"queue_offset": number} for number in range(3))
    file = MemoryFile(data)
    found = [
        to_arrow(batch._replace(records=batch.records[-1:]), ["queueOffset", "size"], kernel)
        for batch in SegmentScan(
            file,
            0,
            0,
            file.size,
            exact=True,
            want=Want.EXPORT,
            window=len(data) // 3,
            kernel=kernel,
        )
    ]
    assert [part.column(0).to_pylist() for part in found] == [[0], [1], [2]]


def located(data: bytes, kernel: Kernel) -> Any:
    """Return a batch of the records of a log, as if a broker had sent them."""
    found, _ = adjacent.find_records(data, kernel)
    return adjacent.located(data + adjacent.PADDING, found[adjacent.AT], kernel)


def test_every_column_has_a_bit() -> None:
    assert BITS.keys() == FIELDS.keys()


@pytest.mark.parametrize("name", FIELDS)
def test_a_column_alone_is_the_same_as_among_all(name: str, kernel: Kernel) -> None:
    data = random_log(3, 300)
    batch = located(data, kernel)
    whole = to_arrow(batch, list(FIELDS), kernel)
    assert to_arrow(batch, [name], kernel).column(0).equals(whole.column(name))


@pytest.mark.parametrize("seed", range(6))
def test_any_columns_are_the_same_as_among_all(seed: int, kernel: Kernel) -> None:
    chance = random.Random(seed)
    batch = located(random_log(seed, chance.choice([1, 127, 128, 129, 300])), kernel)
    names = chance.sample(list(FIELDS), 1 + seed)
    found = to_arrow(batch, names, kernel)
    found.validate(full=True)
    assert found.equals(to_arrow(batch, list(FIELDS), kernel).select(names))


def test_scattered_records_are_those_of_a_scan(kernel: Kernel) -> None:
    """A broker's answer starts anywhere: physical offsets are those that records state."""
    data = random_log(5, 40, base=1 << 33)
    file = MemoryFile(data)
    (batch,) = SegmentScan(file, 1 << 33, 1 << 33, (1 << 33) + len(data), exact=True, kernel=kernel)
    expected = to_arrow(batch, list(FIELDS), kernel)
    found, _ = adjacent.find_records(data, kernel)
    chosen = np.flatnonzero(np.arange(found.shape[1]) % 3)
    some = adjacent.located(data + adjacent.PADDING, found[adjacent.AT, chosen], kernel)
    assert to_arrow(some, list(FIELDS), kernel).equals(expected.take(pa.array(chosen)))


def test_no_records(kernel: Kernel) -> None:
    found = to_arrow(located(b"", kernel), list(FIELDS), kernel)
    found.validate(full=True)
    assert found.num_rows == 0


def test_times_of_a_unit_are_limited(kernel: Kernel) -> None:
    data = log({"born_timestamp": time} for time in (-(1 << 63), -1, 0, 1234, (1 << 63) - 1))
    batch = located(data, kernel)
    found = to_arrow(batch, ["bornTimestamp"], kernel, Times("us", 1000, -2, 10_000)).column(0)
    assert found.type == pa.timestamp("us", tz="UTC")
    assert found.cast(pa.int64()).to_pylist() == [-2000, -1000, 0, 1_234_000, 10_000_000]
    whole = to_arrow(batch, ["bornTimestamp"], kernel).column(0).cast(pa.int64())
    assert whole.to_pylist() == [-(1 << 63), -1, 0, 1234, (1 << 63) - 1]
