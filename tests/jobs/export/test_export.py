from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqlake.dispatch.arrow import SCHEMA
from mqlake.errors import JobError
from mqlake.formats import message_json, record
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.jobs.export import ExportReport, export
from mqlake.jobs.export.job import SCRATCH
from mqlake.jobs.local import LocalEngine
from tests.golden import NAMES, store
from tests.jobs.logs import TIME, LogWriter, change
from tests.jobs.model import read_log
from tests.query.store.mixed import MixedStore
from tests.query.store.truth import expected_rows
from tests.store.make_store import StoreMaker


def run(path: Path, out: Path, **options: Any) -> ExportReport:
    return export(path, LocalEngine(2), out=out, **options)


def rows(out: Path) -> list[dict[str, Any]]:
    table = pq.read_table(out).sort_by("physicalOffset")
    for column in ("bornTimestamp", "storeTimestamp"):
        place = table.schema.get_field_index(column)
        table = table.set_column(place, column, table[column].cast(pa.int64()))
    return table.to_pylist()


def as_message(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in the form of `message_json`."""
    message = {name: value for name, value in row.items() if name not in ("tags", "keys")}
    message["properties"] = dict(row["properties"])
    message["body"] = base64.b64encode(row["body"]).decode()
    return message


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        # Each store once; the other half is for the night.
        pytest.param(name, tasks, marks=[pytest.mark.nightly] if number % 2 != place else [])
        for number, name in enumerate(NAMES)
        for place, tasks in enumerate((None, 7))
    ],
)
def test_every_message_with_every_field(name: str, tasks: int | None, tmp_path: Path) -> None:
    golden = store(name)

    report = run(golden.path, tmp_path / "out", tasks=tasks, decompress=False)

    messages = list(read_log(golden.path, report.log_end))
    found = rows(tmp_path / "out")
    assert [message_json.to_json(message) for message in messages] == [
        as_message(row) for row in found
    ]
    assert [message.tags for message in messages] == [row["tags"] for row in found]
    assert [message.keys for message in messages] == [row["keys"] for row in found]
    assert (len(messages), len(messages)) == (report.messages, report.records)


def test_bodies_are_what_consumers_receive(tmp_path: Path) -> None:
    golden = store("rmq5-clean")

    report = run(golden.path, tmp_path / "out")

    expected = expected_rows(golden)
    found = rows(tmp_path / "out")
    assert [row["bodySha1"] for row in expected] == [
        hashlib.sha1(row["body"]).hexdigest() for row in found
    ]
    assert [row["sysFlag"] for row in expected] == [row["sysFlag"] for row in found]
    assert report.stored_bodies == 0


def test_the_messages_of_an_inner_batch_are_rows(tmp_path: Path) -> None:
    mixed = MixedStore(tmp_path / "store", seed=7)

    report = run(mixed.path, tmp_path / "out")
    tagged = run(mixed.path, tmp_path / "tagged", tag="tag-2")
    keyed = run(mixed.path, tmp_path / "keyed", key=mixed.sent[4]["KEYS"])

    found = sorted(rows(tmp_path / "out"), key=lambda row: row["queueOffset"])
    assert [row["body"] for row in found] == [one["body"] for one in mixed.sent]
    assert report.messages == len(mixed.sent)
    assert tagged.messages == sum(one["TAGS"] == "tag-2" for one in mixed.sent)
    (row,) = rows(tmp_path / "keyed")
    assert (keyed.messages, row["body"]) == (1, mixed.sent[4]["body"])


def test_bodies_that_cannot_be_decompressed_are_counted(tmp_path: Path) -> None:
    maker = StoreMaker()
    maker.sys_flag = COMPRESSED
    maker.append(body=b"no zlib data")
    for name, data in maker.files().items():
        (tmp_path / "store" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "store" / name).write_bytes(data)

    report = run(tmp_path / "store", tmp_path / "out")

    (row,) = rows(tmp_path / "out")
    assert (row["body"], row["sysFlag"]) == (b"no zlib data", COMPRESSED)
    assert (report.stored_bodies, report.messages) == (1, 1)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq49-clean"])
def test_fields_are_those_that_rocketmq_decoded(name: str, tmp_path: Path) -> None:
    golden = store(name)

    run(golden.path, tmp_path / "out")

    for expected, row in zip(golden.messages(), rows(tmp_path / "out"), strict=True):
        assert expected["offsetMsgId"] == row["msgId"]
        for column in ("topic", "queueId", "queueOffset", "physicalOffset", "storeTimestamp"):
            assert expected[column] == row[column]


def test_all_files_have_the_same_columns(tmp_path: Path) -> None:
    run(store("rmq5-clean").path, tmp_path / "out", tasks=9)

    paths = sorted((tmp_path / "out").iterdir())
    assert len(paths) > 5
    for path in paths:
        assert path.name.startswith("part-")
        assert SCHEMA.equals(pq.read_schema(path).remove_metadata())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = LogWriter(tmp_path_factory.mktemp("mixed") / "store")
    for n in range(40):
        properties = {"KEYS": f"k{n % 7} other", "TAGS": f"tag{n % 3}", "UNIQ_KEY": f"U{n}"}
        log.add(f"topic{n % 4}", properties=properties, sys_flag=4 if n == 5 else 0)
    return log.close()


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, range(40)),
        ({"topics": ["topic1"]}, range(1, 40, 4)),
        ({"topics": ["topic1", "topic3"]}, range(1, 40, 2)),
        ({"topics": ["topic"]}, []),
        ({"tag": "tag2"}, range(2, 40, 3)),
        ({"tag": "tag0 || tag1"}, [n for n in range(40) if n % 3 < 2]),
        ({"tag": "*"}, range(40)),
        ({"key": "k3"}, range(3, 40, 7)),
        ({"key": "k"}, []),
        ({"key": "other"}, range(40)),
        ({"key": "U12"}, [12]),
        ({"begin": TIME + 100}, range(10, 40)),
        ({"end": TIME + 100}, range(11)),
        ({"begin": TIME + 51, "end": TIME + 80, "topics": ["topic2"], "tag": "tag0"}, [6]),
    ],
)
def test_filters(options: dict[str, Any], chosen: Any, mixed: Path, tmp_path: Path) -> None:
    report = run(mixed, tmp_path / "out", **options)

    expected = [message.physical_offset for message in read_log(mixed)]
    found = [row["physicalOffset"] for row in rows(tmp_path / "out")]
    assert [expected[n] for n in chosen] == found
    assert (len(found), 40) == (report.messages, report.records)
    assert len(list((tmp_path / "out").iterdir())) == report.files


def test_no_message_is_an_empty_table(mixed: Path, tmp_path: Path) -> None:
    report = run(mixed, tmp_path / "out", topics=["none"])

    table = pq.read_table(tmp_path / "out")
    assert SCHEMA.equals(table.schema.remove_metadata())
    assert (table.num_rows, report.messages, report.files) == (0, 0, 1)


def test_a_damaged_message_is_left_out_and_reported(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(5):
        log.add()
    log.roll_out_of_recovery()
    path = log.close()
    change(path, log.offsets[2] + record.MIN_SIZE - 3, b"!")

    report = run(path, tmp_path / "out")

    found = [row["physicalOffset"] for row in rows(tmp_path / "out")]
    assert [*log.offsets[:2], *log.offsets[3:]] == found
    assert [log.offsets[2]] == [damage.offset for damage in report.damage]


def test_an_imitated_message_is_not_exported(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    at = log.end + record.MIN_SIZE - 3 + 2
    fake = record.encode(topic="Fake", body=b"x" * 50, physical_offset=0)
    body = b"..".join(
        record.encode(topic="Fake", body=b"x" * 50, physical_offset=at + n * (len(fake) + 2))
        for n in range(200)
    )
    log.add(body=b".." + body, properties={})
    log.add()

    for tasks in range(2, 9):
        run(log.store if tasks > 2 else log.close(), tmp_path / f"out{tasks}", tasks=tasks)
        found = [row["topic"] for row in rows(tmp_path / f"out{tasks}")]
        assert found == ["Topic", "Topic"]


def test_what_a_killed_export_left_is_removed(mixed: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / SCRATCH).mkdir(parents=True)
    (tmp_path / "out" / SCRATCH / "rest").touch()

    run(mixed, tmp_path / "out")

    assert not (tmp_path / "out" / SCRATCH).exists()


def test_a_second_export_into_the_same_directory_is_refused(mixed: Path, tmp_path: Path) -> None:
    """Its files had the names of the first one's: messages were exported twice, or not at all."""
    out = tmp_path / "out"

    class Meeting(LocalEngine):
        def run(self, *arguments: Any) -> list[Any]:
            with pytest.raises(JobError, match="another job writes to this directory"):
                run(mixed, out, topics=["none"])
            return super().run(*arguments)

    report = export(mixed, Meeting(2), out=out)

    assert len(rows(out)) == report.messages > 0
    assert not (out / SCRATCH).exists()


def test_a_full_directory_is_refused(mixed: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    with pytest.raises(JobError, match="not empty"):
        run(mixed, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
