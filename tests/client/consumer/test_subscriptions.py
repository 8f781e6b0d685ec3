"""Which messages of a topic a subscription selects."""

from __future__ import annotations

from mqlake.client import Sql
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.formats.java_string import hash_code
from tests.client.messages import consumed


def test_a_subscription_selects_tags_or_a_sql_filter() -> None:
    tags = SelectedTopic("t", " a ||b|| ", 1)
    assert tags.data(9).code_set == sorted((hash_code("a"), hash_code("b")))
    assert (tags.data(9).sub_version, tags.data(9).sub_string) == (9, "a ||b||")
    assert SelectedTopic("t", "", 1).data(1).sub_string == "*"
    sql = SelectedTopic("t", Sql("a > 1"), 1).data(1)
    assert (sql.expression_type, sql.tags_set) == ("SQL92", [])
    message = consumed(0)
    assert not tags.takes(message)
    message.properties["TAGS"] = "b"
    assert tags.takes(message)
