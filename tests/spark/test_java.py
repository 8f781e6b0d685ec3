"""Find a Java runtime that is new enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import JobError
from mqlake.spark import java
from mqlake.spark.java import Java, find_java


def make(home: Path, version: str, *, release: bool = True) -> Path:
    """Make what looks like a Java runtime; without a `release` file its program must be asked."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(java, "COMMON_DIRECTORIES", (str(tmp_path / "jvm"),))


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("version", "feature"), [("17", 17), ("17.0.2", 17), ("21.0.5", 21)])
def test_versions(tmp_path: Path, version: str, feature: int, release: bool) -> None:
    home = make(tmp_path / "jvm" / "any", version, release=release)
    assert find_java() == Java(home, feature)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "jvm" / "installed", "17.0.2")
    on_path = make(tmp_path / "path", "17.0.2")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:/usr/bin:/bin")
    assert find_java().home == on_path
    named = make(tmp_path / "named", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert find_java() == Java(named, 25)


def test_a_link_on_the_path_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make(tmp_path / "real", "17.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_java().home == home


def test_one_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make(tmp_path / "old", "11.0.2")))
    make(tmp_path / "jvm" / "older", "1.8.0_292")
    make(tmp_path / "jvm" / "newest", "25")
    fitting = make(tmp_path / "jvm" / "new enough", "17.0.9")
    assert find_java().home == fitting


def test_no_java_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"^Spark needs Java 17 or newer: install .*JAVA_HOME$"):
        find_java()
    old = make(tmp_path / "jvm" / "old", "11.0.2")
    with pytest.raises(JobError, match=rf"Java 11 in {old} is too old"):
        find_java()


def test_what_is_no_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = make(tmp_path / "jvm" / "broken", "17", release=False)
    (broken / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    garbled = make(tmp_path / "jvm" / "garbled", "x", release=False)
    (garbled / "release").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "jvm" / "file").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "missing"))
    with pytest.raises(JobError):
        find_java()


def test_the_module_tells_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert java.main() == 2
    assert capsys.readouterr().err.startswith("Spark needs Java 17")
    home = make(tmp_path / "jvm" / "any", "17")
    assert java.main() == 0
    assert capsys.readouterr().out == f"Java 17 in {home}\n"
