"""What a program that follows stores tells monitoring systems."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import threading
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mqlake.broker.metrics.reference import metrics_of
from mqlake.cli.follow_metrics import served
from mqlake.lake.options import Format
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow import metrics
from mqlake.spark.follow.job import follow
from mqlake.spark.follow.metrics import LAG, POSITION, FollowProgress
from mqlake.spark.follow.query import FIRST_BATCH, TITLE
from mqlake.store import BlockingMessageStore, Message
from tests.broker.running import next_port
from tests.spark.follow.test_follow import options

pytestmark = [pytest.mark.spark]


def test_what_is_written_is_counted(session: ClassicSession, tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path / "store") as store:
        for number in range(30):
            store.put(Message("A", b"%d" % number))
        with store.lock:
            end = store.core.watermarks.end
    seen: list[tuple[int, int]] = []
    followed = FollowProgress("here", lambda _title, done, total: seen.append((done, total)))
    port = next_port()
    with served(("127.0.0.1", port), [followed]):
        given = options(tmp_path / "store", Format.DELTA, tmp_path / "table")
        follow(session, given, None, followed.report, totals=followed.totals)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=200) as answer:
            text = answer.read().decode()
    families = text_string_to_metric_families(text)
    found = {each.name: each.value for family in families for each in family.samples}
    assert {each.prometheus_name for each in metrics_of(metrics)} <= set(found)
    assert found["mqlake_follow_messages_total"] == 30
    assert found["mqlake_follow_batches_total"] >= 1
    assert found["mqlake_follow_lag_bytes"] == 0
    assert found["mqlake_follow_position"] == seen[-1][0] == end
    assert "mqlake_event_loop_lag_seconds" not in found  # Spark's work is in other threads.
    assert 'store="here"' in text
    assert not [each for each in threading.enumerate() if each.name == "metrics"]


def test_the_progress_of_the_first_batch_is_no_position() -> None:
    seen: list[str] = []
    followed = FollowProgress("here", lambda title, _done, _total: seen.append(title))
    followed.report(FIRST_BATCH, 1, 1)
    assert not [each for each in followed.samples() if each.metric in (POSITION, LAG)]
    followed.report(TITLE, 100, 300)
    found = {each.metric: each.value for each in followed.samples()}
    assert (found[POSITION], found[LAG]) == (100, 200)
    assert seen == [FIRST_BATCH, TITLE]
