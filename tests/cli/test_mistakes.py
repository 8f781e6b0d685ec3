"""What a careless reader of docs/ types, and the one line that each mistake ends in.

Each line says what is wrong, and what to do. Spark puts its own text before it.
"""

from __future__ import annotations

import gc
import os
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import mqlake
from mqlake.errors import MqlakeError
from mqlake.spark.data_source import RocketMQDataSource
from mqlake.spark.kafka_log.data_source import KafkaLogDataSource
from mqlake.spark.reading.one_line import VARIABLE
from tests.cli.conftest import Mqlake
from tests.golden import store
from tests.golden_kafka import log_directory

Options = dict[str, str]

TABLE = tomllib.loads((Path(__file__).with_name("mistakes.toml")).read_text(encoding="utf-8"))


def lines(kind: str) -> Any:
    """Run a test with each mistake of a kind."""
    rows = [(one["given"], one["line"]) for one in TABLE[kind]]
    return pytest.mark.parametrize(("given", "line"), rows, ids=[str(one)[:60] for one, _ in rows])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the directories that mistakes name."""
    root = tmp_path_factory.mktemp("mistakes")
    (root / "home").mkdir()
    (root / "empty").mkdir()
    (root / "full").mkdir()
    (root / "full" / "file").write_bytes(b"")
    golden = store("rmq5-clean").path
    (root / "home" / "store").symlink_to(golden)
    return {
        "STORE": str(golden),
        "HOME": str(root / "home"),
        "EMPTY": str(root / "empty"),
        "FULL": str(root / "full"),
        "NOWHERE": str(root / "nowhere"),
        "KAFKA": str(log_directory()),
        "NEW": str(root / "new"),
        "ARGUMENT": "STORE",
    }


def placed(text: str, places: dict[str, str]) -> str:
    for name, path in places.items():
        text = text.replace(name, path)
    return text


def batch(source: type, given: Options) -> Iterator[Any]:
    made = source(given)
    reader = made.reader(made.schema())
    for partition in reader.partitions():
        yield from reader.read(partition)


@lines("query")
def test_queries(
    given: Options, line: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    asked = {name: placed(text, places) for name, text in given.items()}
    with pytest.raises(MqlakeError) as raised:
        list(batch(RocketMQDataSource, asked))
    assert str(raised.value) == placed(line, places)


@lines("kafka")
def test_queries_of_kafka_logs(given: Options, line: str, places: dict[str, str]) -> None:
    asked = {name: placed(text, places) for name, text in given.items()}
    with pytest.raises(MqlakeError) as raised:
        list(batch(KafkaLogDataSource, asked))
    assert str(raised.value) == placed(line, places)


@lines("open")
def test_tables_without_spark(given: dict[str, Any], line: str, places: dict[str, str]) -> None:
    with pytest.raises(MqlakeError) as raised:
        mqlake.open(places["STORE"], **given)
    assert str(raised.value) == placed(line, places)


def test_streams_have_no_end(places: dict[str, str]) -> None:
    made = RocketMQDataSource({"path": places["STORE"], "endingOffsets": "latest"})
    line = "option endingOffsets: a streaming query has no end: leave it out, or use spark.read"
    with pytest.raises(MqlakeError) as raised:
        made.streamReader(made.schema())
    assert str(raised.value) == line


def test_times_without_a_zone(places: dict[str, str]) -> None:
    line = (
        "startingTimestamp: datetime.datetime(2026, 11, 20, 0, 0) has no time zone; pass an aware "
        "datetime"
    )
    with pytest.raises(MqlakeError) as raised:
        mqlake.open(places["STORE"], startingTimestamp=datetime(2026, 11, 20))  # noqa: DTZ001
    assert str(raised.value) == line


def test_the_environment_does_not_keep_what_hides_stacks(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()  # the errors of other tests
    monkeypatch.delenv(VARIABLE, raising=False)
    while_it_exists = ""
    try:
        RocketMQDataSource({"path": places["STORE"], "subscibe": "TopicA"}).schema()
    except MqlakeError:
        while_it_exists = os.environ[VARIABLE]
    assert while_it_exists == "1"
    assert VARIABLE not in os.environ


@lines("command")
def test_commands(given: str, line: str, places: dict[str, str], mqlake: Mqlake) -> None:
    ran = mqlake(*placed(given, places).split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"mqlake: {placed(line, places)}\n"
