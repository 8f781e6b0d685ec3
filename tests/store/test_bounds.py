"""Whatever a setting is given: it is refused in one line, or a store works with it."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from mqlake.broker.settings import BrokerSettings, make_broker_settings
from mqlake.errors import StoreError
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.bounds import Within, rules
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import BrokerRole, StoreSettings, make_settings
from tests.crash.clock import ManualClock
from tests.hostile_settings import hostile

SMALL: dict[str, object] = {
    "mappedFileSizeCommitLog": 10_000,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
FIELDS = {field.name: field.encode_name for field in msgspec.structs.fields(StoreSettings)}
FEW = 3
"""Values with which a store is tried; those next to the limits come first."""
NOW = 1_800_000_000_000
SECOND, HOUR = 1000, 3_600_000
# Files of this size are made sparse; what an index of it costs has no place in a test.
LARGEST = {"maxHashSlotNum": 10_000, "maxIndexNum": 10_000}


def serve(store: OwnedStore) -> None:
    store.tick()
    while (job := store.services.due()) is not None:
        job.run()
        job.done()


def use(path: Path, settings: StoreSettings) -> None:
    """Put, let time pass, read, plan what goes, close, open again."""
    clock = ManualClock(NOW)
    store = OwnedStore.open(LocalOwnedDirectory.make(path), settings, clock)
    due = str(NOW + 2 * SECOND)
    put = [store.puts.put(Message("T", b"%d" % number, tags="a", keys="k")) for number in range(3)]
    store.puts.put(Message("T", b"later", delay_level=1))
    store.puts.put(Message("T", b"timed", properties={"TIMER_DELIVER_MS": due}))
    store.transactions.prepare(Message("T", b"half"), "G")
    store.config.consumer_offsets.commit("G", "T", 0, 1)
    for step in (1, 50, SECOND, SECOND, SECOND, HOUR, 12 * HOUR, 12 * HOUR):
        clock.forward(step)
        serve(store)
    assert [service.name for service in store.services if service.failures] == []
    assert (store.health.failure, store.health.dispatch_failures) == (None, 0)
    found = [record.body for record in store.reads.get("T", 0, 0, 10).records]
    if settings.broker_role is not BrokerRole.SLAVE and all(result.is_ok for result in put):
        assert found[:1] == [b"0"]
    store.retention.clean()
    store.retention.check()
    store.close()
    again = OwnedStore.open(LocalOwnedDirectory(path), settings, clock)
    assert again.recovered.is_clean
    again.close()


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("most", [FEW, pytest.param(1000, marks=pytest.mark.nightly)])
def test_a_value_is_refused_or_a_store_works_with_it(tmp_path: Path, name: str, most: int) -> None:
    encoded = FIELDS[name]
    works: list[StoreSettings] = []
    refusals: list[str] = []
    for value in hostile(StoreSettings, name):
        try:
            works.append(make_settings(SMALL | {encoded: value}))
        except StoreError as error:
            refusals.append(str(error))
    for line in refusals:
        assert line.startswith(f"setting {encoded}: ")
        assert "\n" not in line
        assert len(line) < 300
    assert works
    for settings in [*dict.fromkeys(works)][:most]:
        if encoded not in LARGEST or getattr(settings, name) <= LARGEST[encoded]:
            use(tmp_path / "store", settings)
            shutil.rmtree(tmp_path / "store")


def test_every_number_has_bounds() -> None:
    for kind in (StoreSettings, BrokerSettings, NamesrvSettings):
        hints = get_type_hints(kind)
        for name, hint in hints.items():
            if hint is int:
                assert isinstance(rules(kind).get(name), Within), f"{name} may be any number"
            if hint is str:
                assert name in rules(kind), f"{name} may be any text"


def test_an_index_file_has_at_most_2_gib() -> None:
    with pytest.raises(StoreError, match="maxHashSlotNum and maxIndexNum"):
        make_settings({"maxHashSlotNum": 100_000_000, "maxIndexNum": 100_000_000})


def test_settings_that_are_made_in_python_are_checked_too() -> None:
    with pytest.raises(StoreError, match=r"setting deleteWhen: 'abc' is not allowed: use hours"):
        StoreSettings(delete_when="abc")


REAL = """\
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
namesrvAddr=192.168.1.10:9876;192.168.1.11:9876
defaultTopicQueueNums=4
autoCreateTopicEnable=true
autoCreateSubscriptionGroup=true
listenPort=10911
deleteWhen=04
fileReservedTime=120
mappedFileSizeCommitLog=1073741824
mappedFileSizeConsumeQueue=300000
diskMaxUsedSpaceRatio=88
storePathRootDir=/data/rocketmq/store
storePathCommitLog=/data/rocketmq/store/commitlog
maxMessageSize=65536
flushCommitLogLeastPages=4
flushConsumeQueueLeastPages=2
flushCommitLogThoroughInterval=10000
flushConsumeQueueThoroughInterval=60000
brokerRole=ASYNC_MASTER
flushDiskType=ASYNC_FLUSH
sendThreadPoolQueueCapacity=100000
maxTransferCountOnMessageInMemory=1000
messageDelayLevel=1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h 12h 1d 7d
timerMaxDelaySec=2592000
transactionCheckInterval=10000
regionId=cn-hangzhou
"""
"""What guides to RocketMQ tell people to write."""


def test_what_people_write_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(REAL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_broker_settings(path).file_reserved_time == 120
