"""The archive of Spark's classes: found by what it fits, and never in the way of a start."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.errors import JobError, MqlakeError
from mqlake.spark import cds, launch
from mqlake.spark.classic import open_embedded
from mqlake.spark.java import Java, find_java


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache


@pytest.fixture
def java(tmp_path: Path) -> Java:
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"')
    return Java(tmp_path / "java", 17)


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


def test_the_archive_of_another_java_or_spark_has_another_name(
    cache: Path, java: Java, spark_home: Path
) -> None:
    first = cds.archive(java, spark_home)
    assert first == cds.archive(java, spark_home)
    assert first is not None
    assert first.parent == cache / "mqlake" / "class-archives"

    (java.home / "release").write_text('JAVA_VERSION="17.0.15"')
    updated = cds.archive(java, spark_home)
    (spark_home / "jars" / "new.jar").touch()
    os.utime(spark_home / "jars", ns=(1, 1))
    other_jars = cds.archive(java, spark_home)
    assert len({first, updated, other_jars}) == 3


def test_no_place_is_no_archive(
    java: Java, spark_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert cds.archive(java, spark_home) is None
    assert not cds.usable(None)


def test_only_an_archive_that_nobody_else_writes_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.jsa"
    assert not cds.usable(path)
    path.touch(0o644)
    assert not cds.usable(path)
    path.write_bytes(b"archive")
    assert cds.usable(path)
    path.chmod(0o666)
    assert not cds.usable(path)


def test_a_good_archive_is_not_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cds.archive(find_java(), launch.spark_home())
    assert path is not None
    path.write_bytes(b"archive")
    monkeypatch.setattr(cds, "_dump", lambda path: pytest.fail("made again"))
    assert cds.make() == path


def test_a_new_archive_replaces_the_oldest(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cds.archive(find_java(), launch.spark_home())
    assert path is not None
    for age in range(cds.KEPT + 2):
        old = path.parent / f"spark-{age}.jsa"
        old.touch()
        os.utime(old, (time.time() - 1000 * (age + 1),) * 2)

    monkeypatch.setattr(cds, "_dump", lambda path: path.write_bytes(b"archive"))

    assert cds.make() == path
    kept = sorted(p.name for p in path.parent.iterdir())
    assert kept == sorted([path.name, *(f"spark-{age}.jsa" for age in range(cds.KEPT - 1))])


def test_an_archive_in_use_is_not_the_oldest(
    cache: Path, java: Java, spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cds.archive(find_java(), launch.spark_home())
    assert own is not None
    own.write_bytes(b"archive")
    os.utime(own, (0, 0))
    for age in range(cds.KEPT - 1):
        other = own.parent / f"spark-{age}.jsa"
        other.touch()
        os.utime(other, (1000 + age,) * 2)
    assert cds.make() == own  # it is there, and it is used

    monkeypatch.setattr(cds, "find_java", lambda: java)
    monkeypatch.setattr(launch, "spark_home", lambda: spark_home)
    monkeypatch.setattr(cds, "_dump", lambda path: path.write_bytes(b"archive"))
    made = cds.make()
    kept = {path.name for path in own.parent.glob("*.jsa")}
    assert kept == {own.name, made.name, *(f"spark-{age}.jsa" for age in range(1, cds.KEPT - 1))}


def test_an_environment_without_an_archive_is_no_failure(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> None:
        raise MqlakeError("the JVM will not")

    monkeypatch.setattr(cds, "_dump", refuse)
    assert cds.main() == 0
    assert capsys.readouterr().err == "Spark will start more slowly: the JVM will not\n"
    assert list(cache.rglob("*.jsa")) == []


@pytest.mark.spark
@pytest.mark.usefixtures("alone")
class TestStart:
    """Spark starts whatever lies where the archive should be."""

    @pytest.fixture
    def failing(self) -> Iterator[None]:
        """PySpark drops the pipe to a JVM that fails, unclosed: let that happen in here."""
        yield
        gc.collect()

    @pytest.fixture
    def path(self, cache: Path) -> Path:
        path = cds.archive(find_java(), launch.spark_home())
        assert path is not None
        path.write_bytes(b"\xf0\x0b\xa8\xa2" + random.Random(1).randbytes(100_000))
        return path

    @pytest.mark.nightly  # what stops the JVM is tested below
    def test_garbage_is_passed_over(self, path: Path) -> None:
        with open_embedded("local[1,1]", None, {}) as session:
            assert session.context.parallelize([1], 1).count() == 1

    @pytest.mark.usefixtures("failing")
    @pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
    def test_an_archive_that_stops_the_jvm_is_removed(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flags = launch.embedded_flags

        def fatal(archive: Path | None) -> str:
            return flags(None) if archive is None else "-Xmx1"

        monkeypatch.setattr(launch, "embedded_flags", fatal)
        with open_embedded("local[1,1]", None, {}) as session:
            assert session.context.parallelize([1], 1).count() == 1
        assert not path.exists()

    @pytest.mark.usefixtures("failing")
    @pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
    def test_a_jvm_that_does_not_start_is_one_line(self, path: Path) -> None:
        """It is the options' fault, not the archive's, which they replace: that stays."""
        with pytest.raises(JobError, match=r"^Spark's JVM did not start: [^\n]+$"):
            open_embedded("local[1,1]", None, {"spark.driver.extraJavaOptions": "-Xmx1"})
        assert path.exists()
