"""Settings: the names of broker.conf, and of the attributes; what is wrong is said."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.formats.dialect import Dialect
from mqlake.store.settings import BrokerRole, FlushDiskType, StoreSettings, make_settings

BROKER_CONF = """
# a comment
! another
brokerIP1 = 10.0.0.7
flushDiskType=SYNC_FLUSH
brokerRole=SLAVE

deleteWhen=04;16
fileReservedTime=48
messageIndexEnable=false
"""


def test_a_broker_conf_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(BROKER_CONF)
    settings = make_settings(path)
    assert settings == StoreSettings(
        broker_ip1="10.0.0.7",
        flush_disk_type=FlushDiskType.SYNC_FLUSH,
        broker_role=BrokerRole.SLAVE,
        delete_when="04;16",
        file_reserved_time=48,
        message_index_enable=False,
    )
    assert make_settings(str(path)) == settings


def test_both_spellings_and_values_as_text_or_not() -> None:
    assert make_settings({"maxIndexNum": "40", "max_hash_slot_num": 7, "indexDialect": "4.9"}) == (
        StoreSettings(max_index_num=40, max_hash_slot_num=7, index_dialect=Dialect.V4_9)
    )
    assert make_settings({"flush_disk_type": FlushDiskType.SYNC_FLUSH}).flush_disk_type.value == (
        "SYNC_FLUSH"
    )
    same = StoreSettings(max_index_num=5)
    assert make_settings(same) is same
    assert make_settings(None) == StoreSettings()


def test_an_unknown_name_warns_and_names_the_nearest() -> None:
    with pytest.warns(
        UserWarning, match=r"flushDiskTyp is not known .* did you mean flushDiskType"
    ):
        assert make_settings({"flushDiskTyp": "SYNC_FLUSH"}) == StoreSettings()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_settings({"zzz": 1})
    assert "did you mean" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"maxIndexNum": "many"}, "setting maxIndexNum: 'many' is not allowed"),
        ({"flushDiskType": "NEVER"}, "flushDiskType: 'NEVER' .* ASYNC_FLUSH or SYNC_FLUSH"),
        ({"maxIndexNum": 1}, "setting maxIndexNum: 1 is not allowed: use 2 to 100000000"),
        (
            {"mappedFileSizeCommitLog": -5},
            "mappedFileSizeCommitLog: -5 is not allowed: use 256 to 2147483647",
        ),
    ],
)
def test_a_wrong_value_is_one_line(values: dict[str, object], reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as wrong:
        make_settings(values)
    assert "\n" not in str(wrong.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.conf: No such file"):
        make_settings(tmp_path / "none.conf")
