"""The programs in docs/kafka.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.storage.local import LocalDirectory
from tests import golden_kafka

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_programs_about_reading_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = programs()[0].replace("/var/lib/kafka/logs", str(golden_kafka.log_directory()))
    exec(compile(text, str(PAGE), "exec"), {})
    assert "PartitionName(topic='txn-open'" in capsys.readouterr().out


def test_programs_about_columns_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = programs()[1].replace("/var/lib/kafka/logs", str(golden_kafka.log_directory()))
    exec(compile(text, str(PAGE), "exec"), {})
    with LogDirectory(LocalDirectory(golden_kafka.log_directory())).partition(
        "plain-none", 0
    ) as partition:
        total = sum(len(record.value or b"") for record in partition.records())
    assert capsys.readouterr().out == f"{total} bytes of values\n"


def test_programs_about_writing_run(tmp_path: Path) -> None:
    exec(compile(programs()[2], str(PAGE), "exec"), {"path": tmp_path})
    with LogDirectory(LocalDirectory(tmp_path)).partition("topic", 0) as partition:
        [record] = partition.records()
        assert (
            record.key,
            record.value,
            record.headers,
        ) == (b"key", b"value", (("name", b"value"),))
