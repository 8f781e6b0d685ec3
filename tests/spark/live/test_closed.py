"""A running cluster that asks for TLS and signatures; no secret is shown or stored."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqlake.admin import Admin
from mqlake.admin.acls import Grant
from mqlake.client import ClientTls, Credentials
from mqlake.client.access import ClientAccess
from mqlake.errors import FormatError
from mqlake.query.live.options import live_options
from mqlake.query.live.plan import plan_tasks
from mqlake.spark.live.sink_options import live_write_options
from mqlake.spark.options.tables import options_of_statement
from mqlake.testing import RunningBroker
from mqlake.workqueue.topics import QueueTopics
from tests.auth.closed import ROOT
from tests.auth.users import closed_broker, create_user
from tests.tls.certificates import Authority

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USER = Credentials("lake", "password-of-lake")
WRONG = "wrong-password"
TOPIC = "Orders"


@pytest.fixture(scope="module")
def closed(authority: Authority) -> Iterator[RunningBroker]:
    """A closed broker with a user whose permissions docs/spark-live.md lists."""
    with closed_broker(authority) as running:
        grants = (
            Grant([f"Topic:{TOPIC}"], ["Create", "Get", "Pub", "Sub"]),
            Grant(["Group:TOOLS_CONSUMER", "Group:lake-group"], ["Sub"]),
            Grant(["Group:lake-group"], ["Create", "Get", "Sub", "Update"]),
        )
        create_user(running, authority, USER, *grants)
        asyncio.run(create_topic(running, authority))
        yield running


async def create_topic(running: RunningBroker, authority: Authority) -> None:
    tls = ClientTls(ca=authority.ca)
    async with Admin(running.name_server, tls=tls, credentials=ROOT) as admin:
        await QueueTopics(admin, "", 4).ensure(TOPIC)


def access_to(running: RunningBroker, authority: Authority, **changed: str) -> dict[str, str]:
    return {
        "nameServer": running.name_server,
        "tlsCa": authority.ca,
        "accessKey": USER.access_key,
        "secretKey": USER.secret_key,
        "retryTimeout": "60s",
        **changed,
    }


def test_options_and_tasks_show_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "nameServer": "a:1",
        "tls": "true",
        "TLSCA": "/ca.pem",
        "tlsCert": "/c",
        "tlsKey": "/k",
        "tlsKeyPassword": "key-password",
        "accessKey": "lake",
    }
    monkeypatch.setenv("MQLAKE_SECRET_KEY", USER.secret_key)
    found = ClientAccess(
        tls=ClientTls(ca="/ca.pem", cert="/c", key="/k", key_password="key-password"),
        credentials=USER,
    )
    options, writing = live_options(given), live_write_options({**given, "topic": TOPIC})
    assert options.access == writing.access == found
    assert live_options(
        {"nameServer": "a:1", "secretKey": "s", "accessKey": "a"}
    ).access == ClientAccess(credentials=Credentials("a", "s"))
    for shown in (options, writing, plan_tasks(options, [])):
        assert pickle.loads(pickle.dumps(shown)) == shown
        assert USER.secret_key not in repr(shown)
        assert "key-password" not in repr(shown)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"secretKey": USER.secret_key}, "accessKey .* is missing"),
        ({"tls": "false", "tlsCa": "/ca"}, "tls is false, but tlsCa is given"),
        ({"tlsVerify": "host"}, "option tlsVerify: 'host' is not one of"),
        ({"secretkeys": USER.secret_key}, "the nearest is secretKey"),
        ({"secretKey": USER.secret_key, "SECRETKEY": "x"}, "are the same"),
    ],
)
def test_options_that_are_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as raised:
        live_options({"nameServer": "a:1", **given})
    assert USER.secret_key not in str(raised.value)


@pytest.mark.parametrize("name", ["secretKey", "tlsKeyPassword"])
def test_a_table_must_not_store_secrets(name: str) -> None:
    given = {"provider": "rocketmq", f"option.{name}": "s", name.lower(): "s"}
    with pytest.raises(FormatError, match="give it in each query"):
        options_of_statement(given)


@pytest.mark.spark
def test_rows_are_written_and_read(
    spark: SparkSession,
    closed: RunningBroker,
    authority: Authority,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = access_to(closed, authority)
    rows = spark.range(20).selectExpr("cast(id as string) as text")
    rows = rows.selectExpr("cast(text as binary) as body")
    rows.write.format("rocketmq").options(**given).option("topic", TOPIC).mode("append").save()
    frame = spark.read.format("rocketmq").options(**given).option("subscribe", TOPIC).load()
    texts = frame.selectExpr("cast(body as string) as text")
    assert {row.text for row in texts.collect()} == {str(number) for number in range(20)}
    frame.explain(mode="extended")
    streaming = spark.readStream.format("rocketmq").options(**given).option("subscribe", TOPIC)
    streaming = streaming.option("startingOffsets", "earliest").option("groupId", "lake-group")
    query = (
        streaming.load()
        .selectExpr("cast(body as string) as text")
        .writeStream.format("json")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    query.awaitTermination()
    assert spark.read.json(str(tmp_path / "rows")).count() == 20
    shown = "".join(capfd.readouterr()) + repr(query.recentProgress)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("offsets" in path.parts for path in files)
    assert not [path for path in files if USER.secret_key.encode() in path.read_bytes()]
    assert USER.secret_key not in shown


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"secretKey": WRONG}, "check signature failed"),
        ({"tlsCa": ""}, "retryTimeout"),
    ],
    ids=["wrong password", "no TLS"],
)
def test_errors_show_no_secret(
    spark: SparkSession,
    closed: RunningBroker,
    authority: Authority,
    changed: dict[str, str],
    reason: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = {**access_to(closed, authority), "retryTimeout": "1s", **changed}
    given = {name: text for name, text in given.items() if text}
    frame = spark.read.format("rocketmq").options(**given).option("subscribe", TOPIC).load()
    with pytest.raises(Exception, match=reason) as raised:
        frame.collect()
    shown = "".join(capfd.readouterr()) + str(raised.value) + str(raised.getrepr())
    assert given["secretKey"] not in shown.replace("secretKey", "")
