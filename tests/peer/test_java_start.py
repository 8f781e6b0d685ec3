"""JVMs that run the same program share an archive of its classes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.spark.launch import QUICK_START
from tests.peer.java_build import PROGRAM, JavaMissingError, build
from tests.peer.java_start import OFTEN, UNVERIFIED, archived, java, keep_classes
from tests.peer.rocketmq_store import SOURCE

pytestmark = pytest.mark.peer

SHARES = "-XX:SharedArchiveFile="


def shared(command: list[str]) -> list[Path]:
    return [Path(word.removeprefix(SHARES)) for word in command if word.startswith(SHARES)]


def test_the_first_jvm_writes_the_archive_that_the_next_one_maps(tmp_path: Path) -> None:
    try:
        program, jars = build(SOURCE).split(":")
    except JavaMissingError as reason:
        pytest.skip(f"without a JDK or jars: {reason}")
    (tmp_path / OFTEN[0]).mkdir()
    copy = tmp_path / OFTEN[0] / PROGRAM
    copy.write_bytes(Path(program).read_bytes())
    path = f"{copy}:{jars}"

    def run() -> tuple[list[str], str]:
        command = java(path, QUICK_START, "Peer")
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"version\n")
            process.stdin.flush()
            process.stdout.readline()
            maps = Path(f"/proc/{process.pid}/maps").read_text()
            keep_classes(command, process.pid)
            process.kill()
        return command, maps

    first, _ = run()
    assert not shared(first)
    second, maps = run()
    (archive,) = shared(second)
    assert str(archive) in maps


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A class path of two jars, of a program that starts often."""
    place = tmp_path / OFTEN[0]
    (place / "jars").mkdir(parents=True)
    for name in (PROGRAM, "jars/one.jar"):
        (place / name).write_bytes(b"jar")
    return f"{place / PROGRAM}:{place / 'jars'}/*"


def test_one_process_writes_an_archive(path: str) -> None:
    assert archived(path, "Main")
    asked = f"from tests.peer.java_start import archived; print(archived({path!r}, 'Main'))"
    other = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert other.stdout == b"()\n"


def test_an_archive_is_of_one_program_and_its_jars(path: str, tmp_path: Path) -> None:
    *_, option = archived(path, "Main")
    Path(option.partition("=")[2]).touch()
    assert shared([*archived(path, "Main")])
    assert not shared([*archived(path, "Other")])
    os.utime(tmp_path / OFTEN[0] / "jars" / "one.jar", ns=(1, 1))
    assert not shared([*archived(path, "Main")])


def test_programs_that_seldom_start_use_none(path: str) -> None:
    assert not {*UNVERIFIED} & {*java(path, QUICK_START, "Main")}
    seldom = path.replace(OFTEN[0], "seldom")
    options = [*UNVERIFIED, *QUICK_START]
    assert java(seldom, QUICK_START, "Main") == ["java", *options, "-cp", seldom, "Main"]


def test_programs_that_are_measured_use_none(path: str) -> None:
    assert java(path, ["-Xmx1g"], "Main", "word") == ["java", "-Xmx1g", "-cp", path, "Main", "word"]
