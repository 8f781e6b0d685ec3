"""Settings of object stores reach pyarrow, delta-rs and PyIceberg."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.lake.options import target_of
from mqlake.lake.tables.lake_options import delta_options, iceberg_options
from mqlake.storage.remote.object_stores import check_settings, filesystem_of

GOOGLE, AZURE = "gs://lake/messages", "abfss://lake@account.dfs.core.windows.net/messages"


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("s3a://lake/a/table/", "s3://lake/a/table"),
        ("gs://lake/table", "gs://lake/table"),
        (
            "abfs://lake@account.dfs.core.windows.net/a/table",
            "abfss://lake@account.dfs.core.windows.net/a/table",
        ),
    ],
)
def test_targets(name: str, url: str, tmp_path: Path) -> None:
    out, found = target_of(name, tmp_path, "delta")
    assert (found, out) == (url, tmp_path / "table" / "table")


@pytest.mark.parametrize(
    "name",
    ["ftp://lake/x", "gs://lake", "abfss://lake/x", "abfss://a:b@c/x", "gs://user@lake/x", "gs://"],
)
def test_refused_targets(name: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="abfss://CONTAINER@ACCOUNT"):
        target_of(name, tmp_path, "delta")


def test_google() -> None:
    given = check_settings(
        {"fs.gs.storage.root.url": "http://127.0.0.1:1", "fs.gs.auth.type": "UNAUTHENTICATED"}
    )
    assert delta_options(GOOGLE, given) == {
        "google_base_url": "http://127.0.0.1:1",
        "google_skip_signature": "true",
        "allow_http": "true",
    }
    found = iceberg_options(GOOGLE, given)
    assert found["gcs.service.host"] == "http://127.0.0.1:1"
    assert found["gcs.oauth2.token"]
    assert delta_options(GOOGLE, {}) == iceberg_options(GOOGLE, {}) == {}
    assert filesystem_of(GOOGLE, given)[1] == "lake/messages"


def test_azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.hadoop.fs.azure.account.key.account.dfs.core.windows.net   a2V5\n"
        "spark.hadoop.fs.azure.account.key.another.dfs.core.windows.net   b3RoZXI=\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    given = check_settings({"fs.azure.abfs.endpoint": "http://127.0.0.1:1"})
    assert delta_options(AZURE, given) == {
        "azure_storage_account_name": "account",
        "azure_storage_account_key": "a2V5",
        "azure_endpoint": "http://127.0.0.1:1/account",
        "allow_http": "true",
    }
    found = iceberg_options(AZURE, given)
    assert found["adls.account-key"] == "a2V5"
    assert found["adls.blob-storage-authority"] == "127.0.0.1:1"
    assert filesystem_of(AZURE, given)[1] == "lake/messages"
    with pytest.raises(StoreError, match="write abfss://container@account"):
        filesystem_of("abfss://lake/messages", given)
