"""The sink inside of a real Spark session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlake.formats import record_crc
from mqlake.store.blocking import BlockingMessageStore
from tests.golden import store
from tests.jobs.model import read_log
from tests.query.store.growing import GrowingStore
from tests.spark.sink.derived_files import check_derived_files
from tests.spark.sink.writing import SMALL
from tests.store.record_crcs import without_crc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqlake.spark.classic import ClassicSession

pytestmark = [pytest.mark.spark]


def save(frame: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    frame.write.format("rocketmq").options(**(SMALL | options)).mode(mode).save(str(path))


def read(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    reader = spark.read.format("rocketmq").option("decompress", "false")
    rows = reader.load(str(path)).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: row["physicalOffset"])


def test_any_thread_that_asks_for_the_session_writes(
    session: ClassicSession, tmp_path: Path
) -> None:
    def write(number: int) -> None:
        frame = session.spark.range(3).selectExpr("cast(id as string) as body", "'T' as topic")
        save(frame, tmp_path / str(number))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert {len(read(session.spark, tmp_path / str(number))) for number in range(2)} == {3}


def test_a_store_is_copied(spark: SparkSession, tmp_path: Path) -> None:
    golden = store("rmq5-clean").path
    path = tmp_path / "copy"
    reader = spark.read.format("rocketmq").option("decompress", "false")
    frame = reader.option("minPartitions", 1).load(str(golden))

    larger = {"mappedFileSizeCommitLog": 1 << 22, "mappedFileSizeConsumeQueue": 6000}
    save(frame, path, maxMessageSize=1 << 23, maxIndexNum=10_000, **larger)

    kept = [
        "topic",
        "flag",
        "body",
        "properties",
        "queueId",
        "bornTimestamp",
        "tags",
        "keys",
        "uniqKey",
        "reconsumeTimes",
        "bornHost",
        "preparedTransactionOffset",
        "bodyCrc",
    ]
    found, wanted = read(spark, path), read(spark, golden)
    for row in found + wanted:
        row["properties"].pop(record_crc.NAME, None)
        row["properties"]["KEYS"] = " ".join(row["keys"])  # some have more spaces between
    assert [[row[name] for name in kept] for row in found] == [
        [row[name] for name in kept] for row in wanted
    ]
    assert not list((path / ".mqlake-sink").glob("batch-*"))
    check_derived_files(path)


def test_rows_of_several_tasks_and_a_second_write(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "store"
    frame = spark.range(0, 2000, 1, 3).selectExpr(
        "cast(id as string) as body",
        "concat('Topic', id % 3) as topic",
        "cast(id % 5 as int) as queueId",
        "array(concat('key-', id)) as keys",
        "if(id % 2 = 0, 'even', null) as tags",
        "map('id', cast(id as string)) as properties",
        "timestamp_millis(id + 1) as bornTimestamp",
    )
    save(frame, path)
    save(frame.limit(10), path)

    found = list(read_log(path))
    assert [int(one.body) for one in found] == [*range(2000), *range(10)]
    for one in found:
        number = int(one.body)
        tags = {"TAGS": "even"} if number % 2 == 0 else {}
        assert without_crc(one.properties) == {"id": str(number), "KEYS": f"key-{number}"} | tags
        assert (one.topic, one.queue_id) == (f"Topic{number % 3}", number % 5)
        assert one.born_timestamp == number + 1
    check_derived_files(path)


def test_a_stream_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark has not noted as done is run again: it forgets a batch, and is killed."""
    source, path, checkpoint = (tmp_path / name for name in ("source", "store", "checkpoint"))
    growing = GrowingStore(source)
    growing.grow(120)

    def run() -> None:
        frame = spark.readStream.format("rocketmq").option("maxOffsetsPerTrigger", 50)
        writer = frame.option("startingOffsets", "earliest").load(str(source)).writeStream
        query = (
            writer.format("rocketmq")
            .options(**SMALL)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(path))
        )
        query.awaitTermination()

    run()
    last = max((checkpoint / "commits").iterdir(), key=lambda one: one.name)
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink()
    growing.grow(30)
    run()

    assert [one.keys[0] for one in read_log(path)] == growing.keys
    assert [entry.name for entry in (path / ".mqlake-sink").iterdir()] == ["journal.json"]
    check_derived_files(path)


def message_of(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["'b' as body"], {}, "there is neither a column topic nor an option topic"),
        (["'t' as topic"], {}, "column body is missing"),
        (
            ["'b' as body", "'t' as topic", "1 as queueID", "'x' as keyz"],
            {},
            "the sink has no column 'keyz'; the nearest is keys",
        ),
        (
            ["'b' as value", "'t' as topic"],
            {},
            "the sink has no column 'value'; Kafka's value is body here",
        ),
        (
            ["'b' as body", "1.5 as topic"],
            {},
            "column topic has type decimal(2,1); it must be string",
        ),
        (["'b' as body"], {"topik": "t"}, "no option 'topik'; the nearest is topic"),
        (["'b' as body"], {"mode": "overwrite", "topic": "t"}, "mode overwrite would delete"),
        (["cast(null as string) as body"], {"topic": "t"}, "a row has no body: it is null"),
        (["'b' as body"], {"topic": "a/b"}, "not a valid topic name: 'a/b'"),
    ],
)
def test_errors(
    spark: SparkSession,
    tmp_path: Path,
    columns: list[str],
    options: dict[str, str],
    message: str,
) -> None:
    path = tmp_path / "store"
    with pytest.raises(Exception, match=r"mqlake\.errors") as error:
        save(spark.range(1).selectExpr(*columns), path, **options)
    assert message in message_of(error)
    assert "Traceback" not in message_of(error)
    assert not (path / "commitlog").exists()
    assert not list(path.glob(".mqlake-sink/*"))


def test_targets_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1).selectExpr("'b' as body", "'t' as topic")
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    with pytest.raises(Exception, match=r"neither a store nor empty \(it contains 'file'\)"):
        save(frame, other)

    path = tmp_path / "store"
    with (
        BlockingMessageStore.open(path, SMALL),
        pytest.raises(Exception, match=r"process \d+ owns this store; stop it first"),
    ):
        save(frame, path)
    save(frame, path)
    (path / "abort").touch()
    with pytest.raises(Exception, match=r"the store was not closed \(it contains 'abort'\)"):
        save(frame, path)
