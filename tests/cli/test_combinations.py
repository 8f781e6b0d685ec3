"""Options of `mqlake follow` that cannot be combined are refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.cli.combinations import check_combination, named_values
from mqlake.cli.options import UsageError
from tests.cli.conftest import Mqlake

OUT = {"--out": "/lake/orders"}


@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("delta", OUT),
        ("store", {"--out": None, "--check": False, "--catalog-option": [], "--columns": None}),
        ("iceberg", {**OUT, "--catalog": "sqlite:///catalog.db", "--table": "lake.orders"}),
        ("delta", {**OUT, "--decode": "json:id int", "--decode-option": ["framing=none"]}),
        ("delta", {**OUT, "--replica-of-cluster": "DefaultCluster", "--keep-hours": 0}),
    ],
)
def test_valid_combinations_of_options_are_accepted(to: str, options: dict[str, object]) -> None:
    check_combination(to, options)


@pytest.mark.parametrize(
    ("to", "options", "reason"),
    [
        ("delta", {}, "--to delta needs --out, the table to write to"),
        (
            "store",
            OUT,
            "--out cannot be combined with --to store; use --to delta, iceberg or parquet",
        ),
        (
            "store",
            {"--columns": "topic"},
            "--columns cannot be combined with --to store; use --to delta, iceberg or parquet",
        ),
        *(
            (
                "store",
                {name: True},
                f"{name} cannot be combined with --to store; use --to delta, iceberg or parquet",
            )
            for name in ("--system-topics", "--decompress", "--metrics")
        ),
        *(
            (
                "delta",
                {**OUT, name: True, "--metrics": ":9"},
                f"{name} and --metrics cannot be combined",
            )
            for name in ("--check", "--replay")
        ),
        (
            "delta",
            {**OUT, "--table": "lake.orders"},
            "--table cannot be combined with --to delta; use --to iceberg",
        ),
        (
            "parquet",
            {**OUT, "--replica-of": ["broker-a"]},
            "--replica-of cannot be combined with --to parquet; use --to delta or iceberg",
        ),
        (
            "delta",
            {**OUT, "--check": True, "--replay": True},
            "--check and --replay cannot be combined",
        ),
        (
            "delta",
            {**OUT, "--check": True, "--replica-of": ["broker-a"]},
            "--check and --replica-of cannot be combined",
        ),
        ("delta", {**OUT, "--decode-option": ["framing=none"]}, "--decode-option needs --decode"),
        (
            "delta",
            {**OUT, "--keep-hours": 0},
            "--keep-hours needs --replica-of or --replica-of-cluster",
        ),
    ],
)
def test_invalid_combinations_of_options_are_refused(
    to: str, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(UsageError) as error:
        check_combination(to, options)
    assert str(error.value) == reason


def test_named_values() -> None:
    assert named_values(["a=1", "b=x=y"], "--set") == {"a": "1", "b": "x=y"}
    with pytest.raises(UsageError) as error:
        named_values(["secret"], "--storage-option")
    assert str(error.value) == "--storage-option needs NAME=VALUE"


@pytest.mark.parametrize("address", ["9100", ":9100", "h:x", "h:99999", "h:" + "1" * 5000])
def test_a_wrong_address_of_metrics_is_refused_before_spark_starts(
    mqlake: Mqlake, tmp_path: Path, address: str
) -> None:
    found = mqlake("follow", tmp_path, "--to", "delta", "--out", tmp_path, "--metrics", address)
    assert (found.code, found.out) == (2, "")
    assert "--metrics" in found.err
    assert "Spark" not in found.err
