"""Java programs are built once, several of them by one run of Maven and one of javac."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.peer import java_build
from tests.peer.java_build import Program, build_all
from tests.peer.java_programs import PROGRAMS

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <version>1</version>
</project>
"""
MVN = """#!/bin/sh
dir=$(dirname "$4")
echo run >> "$RUNS"
for pom in "$dir"/*/pom.xml; do
  jars=$(sed -n 's/.*<outputDirectory>\\(.*\\)<.outputDirectory>.*/\\1/p' "$pom")
  mkdir -p "$jars"
  sed -n 's/.*<peer.version>\\(.*\\)<.peer.version>.*/\\1/p' "$pom" > "$jars/version"
done
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each run of a Maven that fetches nothing."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed (apt-get install default-jdk-headless)")
    found = tmp_path / "runs"
    found.touch()
    (tmp_path / "bin").mkdir()
    mvn = tmp_path / "bin" / "mvn"
    mvn.write_text(MVN)
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mvn.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("RUNS", str(found))
    monkeypatch.setattr(java_build, "BUILD", tmp_path / "build")
    return found


def program(place: Path, name: str, version: str | None = None) -> Program:
    source = place / name
    source.mkdir(exist_ok=True)
    (source / "pom.xml").write_text(POM)
    main = f'public static void main(String[] words) {{ System.out.print("I am {name}"); }}'
    (source / "Main.java").write_text(f"class Main {{ {main} }}")
    return Program(source, version)


def said(each: Program) -> bytes:
    command = ["java", "-cp", each.path, "Main"]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.peer
def test_programs_are_built_by_one_run_and_only_once(tmp_path: Path, runs: Path) -> None:
    programs = [program(tmp_path, "one"), program(tmp_path, "two", "1.0")]
    programs.append(program(tmp_path, "two", "2.0"))
    build_all(programs)
    build_all([*programs, programs[0]])
    assert runs.read_text() == "run\n"
    assert [said(each) for each in programs] == [b"I am one", b"I am two", b"I am two"]
    versions = [(each.jars / "version").read_text().strip() for each in programs]
    assert versions == ["", "1.0", "2.0"]


@pytest.mark.peer
def test_only_what_has_changed_is_built_again(tmp_path: Path, runs: Path) -> None:
    one, two = program(tmp_path, "one"), program(tmp_path, "two")
    build_all([one, two])
    (two.output / "Main.jsa").touch()
    (one.output / "Main.jsa").touch()
    (two.source / "Main.java").write_text((two.source / "Main.java").read_text() + "\n")
    shutil.rmtree(one.classes)
    build_all([one, two])
    assert runs.read_text() == "run\n" * 2
    assert not one.classes.exists()
    assert (one.output / "Main.jsa").exists()
    assert not (two.output / "Main.jsa").exists()


@pytest.mark.peer
def test_a_program_that_does_not_compile_is_not_built(tmp_path: Path, runs: Path) -> None:
    wrong = program(tmp_path, "wrong")
    (wrong.source / "Main.java").write_text("class Main { nothing }")
    for count in (1, 2):
        with pytest.raises(subprocess.CalledProcessError):
            build_all([wrong])
        assert runs.read_text() == "run\n" * count


def test_each_program_of_an_ordinary_run_is_there() -> None:
    assert all((each.source / "pom.xml").is_file() for each in PROGRAMS)
    assert len({each.output for each in PROGRAMS}) == len(PROGRAMS)
