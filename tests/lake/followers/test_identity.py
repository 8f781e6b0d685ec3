"""A checkpoint and a table that do not belong together are refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mqlake.errors import JobError
from mqlake.lake.followers.identity import held
from mqlake.lake.options import FollowOptions, Format


@pytest.fixture
def first(tmp_path: Path) -> FollowOptions:
    given = FollowOptions(
        store=tmp_path / "store",
        format=Format.DELTA,
        out=tmp_path / "table",
        checkpoint=tmp_path / "checkpoint",
    )
    with held(given):
        pass
    return given


def test_the_id_stays(first: FollowOptions) -> None:
    with held(first) as one:
        pass
    with held(first) as two:
        assert one == two


@pytest.mark.parametrize(
    "change", [{"store": Path("/other")}, {"format": Format.PARQUET}, {"out": Path("other")}]
)
def test_a_checkpoint_of_others(
    first: FollowOptions, change: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(JobError, match=r"this checkpoint is that of .*store into the delta table"),
        held(msgspec.structs.replace(first, **change)),
    ):
        pass


def test_a_checkpoint_of_another_query(first: FollowOptions, tmp_path: Path) -> None:
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    with (
        pytest.raises(JobError, match="spark: this is the checkpoint of another query"),
        held(msgspec.structs.replace(first, checkpoint=tmp_path / "spark")),
    ):
        pass


def test_a_second_checkpoint_would_double_rows(first: FollowOptions, tmp_path: Path) -> None:
    known = rf"has messages of {first.store} already, by --checkpoint {first.checkpoint}: "
    with (
        pytest.raises(JobError, match=known),
        held(msgspec.structs.replace(first, checkpoint=tmp_path / "new")),
    ):
        pass
    shutil.rmtree(first.checkpoint)
    with pytest.raises(JobError, match=known), held(first):
        pass
    other = msgspec.structs.replace(first, store=tmp_path / "two", checkpoint=tmp_path / "new")
    with held(other):
        pass


HOLD = """
import sys
from pathlib import Path
from mqlake.lake.followers.identity import in_use
with in_use(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_checkpoint_in_use(first: FollowOptions) -> None:
    command = [sys.executable, "-c", HOLD, str(first.checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(JobError, match="checkpoint: in use by another mqlake follow"),
            held(first),
        ):
            pass
        holder.communicate()
    with held(first):
        pass
