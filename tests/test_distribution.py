"""What is released: a wheel that installs without the tree, runs, and has the extras it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import mqlake
from mqlake.testing import broker
from tests.golden import store
from tests.unpacking import unpack

ROOT = Path(__file__).parents[1]
UNREACHABLE = (
    "Failed to fetch",
    "error sending request",
    "dns error",
    "network was disabled",
    "NewConnectionError",
)
IMAGE = re.compile(r"image: mqlake:(\S+)")
SECONDS = 240

pytestmark = [
    pytest.mark.timeout(3 * SECONDS),
]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program outside of the tree; return what it wrote."""
    # Kernels in plain Python: a new environment would compile them for a minute.
    environment = os.environ | {"MQLAKE_KERNEL": "reference"}
    environment.pop("PYTHONPATH", None)
    ran = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ran.returncode and any(words in ran.stderr for words in UNREACHABLE):
        pytest.skip(f"no package registry: {ran.stderr.strip().splitlines()[-1]}")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution."""
    place = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "hatchling", "build", "-d", place, cwd=ROOT)
    return place


def wheel(place: Path) -> Path:
    (found,) = place.glob("*.whl")
    return found


def test_names_have_the_version(distributions: Path) -> None:
    version = mqlake.__version__
    names = {path.name for path in distributions.iterdir()}
    assert names == {f"mqlake-{version}-py3-none-any.whl", f"mqlake-{version}.tar.gz"}


def test_the_changelog_and_the_examples_name_the_version() -> None:
    version, container = mqlake.__version__, ROOT / "examples" / "container"
    assert f"\n## [{version}] - 20" in (ROOT / "CHANGELOG.md").read_text()
    images = IMAGE.findall((container / "kubernetes.yaml").read_text())
    assert images == [version] * 2
    assert f"=={version}.\n" in (container / "Containerfile").read_text()


def test_the_wheel_has_every_file_of_the_packages(distributions: Path) -> None:
    packages = ("mqlake", "pyspark_kafka_log", "pyspark_rocketmq")
    listed = run("git", "ls-files", *(f"src/{name}" for name in packages), cwd=ROOT).splitlines()
    with zipfile.ZipFile(wheel(distributions)) as archive:
        assert set(archive.namelist()) >= {name.removeprefix("src/") for name in listed}
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert sorted(extras) == sorted(
        line.removeprefix("Provides-Extra: ")
        for line in text.splitlines()
        if line.startswith("Provides-Extra: ")
    )


def test_the_source_distribution_builds_the_same_wheel(distributions: Path, tmp_path: Path) -> None:
    (source,) = distributions.glob("*.tar.gz")
    unpack(source, tmp_path)
    tree = tmp_path / source.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=tree)
    assert wheel(tmp_path).read_bytes() == wheel(distributions).read_bytes()


def test_the_wheel_runs_in_a_new_environment(distributions: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, environment, cwd=tmp_path)
    python, command = environment / "bin" / "python", environment / "bin" / "mqlake"
    locked = tmp_path / "constraints.txt"
    locked.write_text(versions())
    install = (sys.executable, "-m", "uv", "pip", "install", "--python", python, "-c", locked)
    built = wheel(distributions)

    run(*install, built, cwd=tmp_path)
    assert run(command, "--version", cwd=tmp_path) == f"mqlake {mqlake.__version__}\n"
    place = run(python, "-c", "import mqlake.client; print(mqlake.__file__)", cwd=tmp_path)
    assert place.startswith(str(environment))
    with broker() as running:
        example = ROOT / "examples" / "send_and_receive.py"
        lines = run(python, example, running.name_server, cwd=tmp_path).splitlines()
    assert lines[0] == "sent 10 orders"
    assert len(lines) == 6

    run(*install, f"mqlake[parquet,codecs] @ {built.as_uri()}", cwd=tmp_path)
    golden = store("rmq5-clean")
    for name, *arguments in (
        ("find_by_key.py", "TopicA", "键-3"),
        ("read_topic.py", "TopicA"),
        ("rebuild_elsewhere.py", tmp_path / "rebuilt"),
    ):
        assert run(python, ROOT / "examples" / name, golden.path, *arguments, cwd=tmp_path)
    assert (tmp_path / "rebuilt" / "checkpoint").exists()


@pytest.mark.nightly  # uv installs it with other extras above
def test_plain_pip_installs_the_wheel_with_an_extra(distributions: Path, tmp_path: Path) -> None:
    environment, locked = tmp_path / "environment", tmp_path / "constraints.txt"
    locked.write_text(versions())
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python, wanted = (
        environment / "bin" / "python",
        f"mqlake[codecs] @ {wheel(distributions).as_uri()}",
    )
    install = ("install", "--quiet", "--no-compile", "-c", locked, wanted)
    run(python, "-m", "pip", *install, cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)
    version = run(environment / "bin" / "mqlake", "--version", cwd=tmp_path)
    assert version == f"mqlake {mqlake.__version__}\n"
    run(python, "-c", "import cramjam, mqlake.client", cwd=tmp_path)


def versions() -> str:
    """Return the locked versions, without their hashes."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return "\n".join(line.removesuffix(" \\") for line in lines if "==" in line)
