"""No message shows what may be a secret."""

from __future__ import annotations

import pytest

import mqlake
from mqlake.errors import StoreError
from mqlake.storage.object_target import open_target
from mqlake.storage.shown_url import shown_url
from mqlake.store.archive.opening import open_place


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("/data/a?b@c", "/data/a?b@c"),
        ("s3://bucket/a b", "s3://bucket/a b"),
        ("s3a://KEY:SECRET@bucket/a?region=x", "s3a://bucket/a"),
        ("hdfs://user:SECRET@host:9000/a@b", "hdfs://host:9000/a@b"),
        ("s3://KEY:SEC@RET@bucket", "s3://bucket"),
    ],
)
def test_urls_are_shown_without_credentials(place: str, shown: str) -> None:
    assert shown_url(place) == shown


@pytest.mark.parametrize(
    "url",
    [
        "s3://KEY:SECRET@?x=1",
        "s3a://KEY:SECRET@bucket/a?unknown=SECRET",
        "hdfs://user:SECRET@/a",
        "nothing://user:SECRET@host/a",
    ],
)
def test_errors_show_no_secret(url: str) -> None:
    for read in (_read_table, open_place, open_target):
        with pytest.raises(StoreError) as error:
            read(url)
        assert "SECRET" not in str(error.value)


def _read_table(url: str) -> object:
    return mqlake.open(url).reader()
