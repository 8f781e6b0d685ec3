"""Which files go, when and why: simulated disks, days and time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.storage.protocol import DiskUsage
from mqlake.store.retention.plan import (
    DerivedFile,
    LogPlan,
    Moment,
    Reason,
    SegmentFile,
    is_time,
    next_time,
    not_writable,
    plan_derived,
    plan_log,
    used_percent,
)
from mqlake.store.settings import StoreSettings

HOUR = 60 * 60 * 1000
NOW = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
SIZE = 1000


def log(*ages: float) -> list[SegmentFile]:
    """Return segments that were last written so many hours ago."""
    return [
        SegmentFile(f"commitlog/{n * SIZE:020d}", n * SIZE, SIZE, NOW - int(age * HOUR))
        for n, age in enumerate(ages)
    ]


def plan(
    files: list[SegmentFile],
    *,
    is_due: bool = False,
    used: int = 50,
    total: int = 100 * SIZE,
    needed: int | None = None,
    **settings: object,
) -> LogPlan:
    usage = DiskUsage(total, total - total * used // 100)
    end = (files[-1].base + 1 if files else 0) if needed is None else needed
    chosen = StoreSettings(**settings)  # type: ignore[arg-type]
    return plan_log(chosen, Moment(NOW, is_due, usage), files, end)


def gone(found: LogPlan) -> list[tuple[int, Reason]]:
    return [(int(removal.file.split("/")[1]) // SIZE, removal.reason) for removal in found.removals]


def test_files_go_after_72_hours_and_not_a_millisecond_before() -> None:
    files = log(72, 72, 0)
    assert gone(plan(files, is_due=True)) == [(0, Reason.EXPIRED), (1, Reason.EXPIRED)]
    young = [files[0], files[1]._replace(modified=files[1].modified + 1), files[2]]
    found = plan(young, is_due=True)
    assert gone(found) == [(0, Reason.EXPIRED)]
    assert found.min_offset == SIZE


def test_nothing_goes_outside_the_hour_while_there_is_room() -> None:
    assert gone(plan(log(900, 900, 0))) == []
    assert gone(plan(log(900, 900, 0), used=75)) == []


def test_expired_files_go_at_any_hour_until_the_disk_is_down_to_75_percent() -> None:
    assert gone(plan(log(900, 900, 900, 0), used=77)) == [(0, Reason.EXPIRED), (1, Reason.EXPIRED)]
    assert gone(plan(log(1, 900, 0), used=77)) == []


def test_an_old_file_behind_a_young_one_stays() -> None:
    assert gone(plan(log(900, 1, 900, 0), is_due=True)) == [(0, Reason.EXPIRED)]


def test_above_85_percent_young_files_go_until_it_is_not() -> None:
    assert gone(plan(log(1, 1, 1, 1, 0), used=87)) == [(0, Reason.DISK), (1, Reason.DISK)]
    assert gone(plan(log(1, 1, 1, 1, 0), used=85)) == []
    found = plan(log(1, 1, 1, 0), used=87, clean_file_forcibly_enable=False)
    assert gone(found) == []
    assert "cleanFileForciblyEnable" in found.warnings[0]


def test_the_last_file_stays_whatever_happens() -> None:
    found = plan(log(900, 900), is_due=True, used=100, max_commit_log_bytes=1)
    assert gone(found) == [(0, Reason.BYTES)]
    assert len(found.warnings) == 2
    assert gone(plan(log(900), is_due=True, used=100)) == []
    assert gone(plan([], is_due=True, used=100)) == []


def test_a_file_made_ahead_is_not_the_last_one() -> None:
    files = log(900, 900, 0)
    assert gone(plan(files, is_due=True, needed=SIZE + 10)) == [(0, Reason.EXPIRED)]
    assert gone(plan(files, is_due=True, needed=2 * SIZE)) == [(0, Reason.EXPIRED)]
    assert gone(plan(files, is_due=True, needed=2 * SIZE + 1)) == [
        (0, Reason.EXPIRED),
        (1, Reason.EXPIRED),
    ]


def test_what_has_not_been_dispatched_stays() -> None:
    assert gone(plan(log(900, 900, 900, 0), is_due=True, needed=SIZE + 1)) == [(0, Reason.EXPIRED)]


def test_the_oldest_files_beyond_the_limit_in_bytes_go() -> None:
    files = log(1, 1, 1, 1)
    assert gone(plan(files, max_commit_log_bytes=4 * SIZE)) == []
    assert gone(plan(files, max_commit_log_bytes=2 * SIZE)) == [
        (0, Reason.BYTES),
        (1, Reason.BYTES),
    ]
    assert gone(plan(files, max_commit_log_bytes=0)) == []


@pytest.mark.parametrize(
    ("used", "total", "percent"), [(0, 100, 0), (75, 100, 75), (751, 1000, 76), (0, 0, 0)]
)
def test_percents_are_rounded_up(used: int, total: int, percent: int) -> None:
    assert used_percent(DiskUsage(total, total - used)) == percent


def test_the_store_is_read_only_while_the_disk_is_full_and_comes_back() -> None:
    settings = StoreSettings()
    assert not_writable(settings, DiskUsage(1000, 100)) is None
    assert "91 %" in (not_writable(settings, DiskUsage(1000, 99)) or "")
    assert not_writable(settings, DiskUsage(1000, 100)) is None


@pytest.mark.parametrize(("setting", "bound"), [(0, 35), (100, 90), (60, 60)])
def test_ratios_keep_within_rocketmqs_bounds(setting: int, bound: int) -> None:
    settings = StoreSettings(disk_space_warning_level_ratio=setting)
    assert not_writable(settings, DiskUsage(100, 100 - bound)) is None
    assert not_writable(settings, DiskUsage(100, 100 - bound - 1)) is not None


KATHMANDU = timezone(timedelta(hours=5, minutes=45))


def test_the_hour_is_that_of_the_place() -> None:
    four = int(datetime(2026, 3, 10, 4, tzinfo=KATHMANDU).timestamp() * 1000)
    settings = StoreSettings()
    assert is_time(settings, four, KATHMANDU)
    assert is_time(settings, four + HOUR - 1, KATHMANDU)
    assert not is_time(settings, four - 1, KATHMANDU)
    assert not is_time(settings, four + HOUR, KATHMANDU)
    assert not is_time(settings, four, UTC)
    assert next_time(settings, four - 1, KATHMANDU) == four
    assert next_time(settings, four + 5, KATHMANDU) == four + 5
    assert next_time(settings, four + HOUR, KATHMANDU) == four + 24 * HOUR


def test_several_hours_a_day() -> None:
    settings = StoreSettings(delete_when="04; 16;23")
    day = NOW - NOW % (24 * HOUR)
    hours = [hour for hour in range(24) if is_time(settings, day + hour * HOUR, UTC)]
    assert hours == [4, 16, 23]


@pytest.mark.parametrize("text", ["", "24", "4,5", "-1", "four", ";", "٤"])
def test_invalid_hours_are_refused(text: str) -> None:
    with pytest.raises(StoreError, match="deleteWhen"):
        is_time(StoreSettings(delete_when=text), NOW)


def test_derived_files_go_with_what_they_point_to() -> None:
    files = [DerivedFile(f"q/{n}", 20, last) for n, last in enumerate([10, 20, 30, 40])]
    assert [removal.file for removal in plan_derived(files, 30)] == ["q/0", "q/1"]
    assert [removal.file for removal in plan_derived(files, 31)] == ["q/0", "q/1", "q/2"]
    assert [removal.file for removal in plan_derived(files, 99)] == ["q/0", "q/1", "q/2"]
    assert plan_derived(files[:1], 99) == []
    assert plan_derived([], 99) == []


@given(
    ages=st.lists(st.integers(0, 200), min_size=1, max_size=12),
    used=st.integers(0, 100),
    is_due=st.booleans(),
    limit=st.integers(0, 14 * SIZE),
    needed=st.integers(0, 12 * SIZE),
)
def test_rules_that_hold_for_every_plan(
    ages: list[int], used: int, is_due: bool, limit: int, needed: int
) -> None:
    files = log(*ages)
    found = plan(files, is_due=is_due, used=used, max_commit_log_bytes=limit, needed=needed)
    count = len(found.removals)
    assert [removal.file for removal in found.removals] == [file.path for file in files[:count]]
    assert count < len(files)
    assert all(file.base + SIZE < needed for file in files[:count])
    assert found.min_offset == files[count].base
    for removal, age in zip(found.removals, ages, strict=False):
        if removal.reason is Reason.EXPIRED:
            assert age >= 72
    again = plan_log(
        StoreSettings(max_commit_log_bytes=limit),
        Moment(NOW, is_due, DiskUsage(100 * SIZE, (100 - used + count) * SIZE)),
        files[count:],
        needed,
    )
    assert again.removals == [], "once done there is nothing left to do"
