"""Pages name every extra and package, and install what the commands after them need."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.documents.pages import ROOT, pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

_NAME = re.compile(r"[\w.-]+")
_OWN = re.compile(r"mqlake\[([\w,-]+)\]")
_CODE = re.compile(r"`([\w.-]+)(?:\[[\w,-]+\])?`")
_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_INSTALL = re.compile(r"pip install '(?:mqlake|\.)\[([\w,-]+)\]'")
_COMMAND = re.compile(r"^(?:\$ )?mqlake (\w+)", re.MULTILINE)

COMMANDS = {
    **dict.fromkeys(("broker", "query", "rebuild", "replica", "retention", "verify"), "store"),
    "console": "console",
    "export": "parquet",
    "follow": "spark",
    "proxy": "grpc",
}
"""The extra that a command needs, at least."""

PROGRAMS = (
    ("store", "mqlake.broker.broker"),
    ("store", "mqlake.replica.replica"),
    ("console", "mqlake.console.server"),
    ("grpc", "mqlake.programs.proxy"),
    ("celery", "mqlake.kombu.transport"),
    ("taskiq", "mqlake.taskiq"),
)
"""The module that starts a program, and the extra that it needs."""

MODULES = {
    "google-crc32c": "google_crc32c",
    "prometheus-client": "prometheus_client",
    "pyyaml": "yaml",
    "hdfs-native": "hdfs_native",
    "protobuf": "google.protobuf",
    "opentelemetry-exporter-otlp-proto-grpc": "opentelemetry",
}
"""The module of a package, if it has another name."""


def packages(requirements: list[str]) -> set[str]:
    """Return the names of the packages, without mqlake's own extras."""
    found = {match[0] for each in requirements if (match := _NAME.match(each))}
    return found - {"mqlake"}


def installed(extra: str) -> set[str]:
    """Return the names of the packages that an extra installs, with those of extras in it."""
    found = packages(EXTRAS[extra])
    for each in EXTRAS[extra]:
        if own := _OWN.fullmatch(each):
            found |= {name for below in own[1].split(",") for name in installed(below)}
    return found


def extras_of(names: list[str]) -> set[str]:
    """Return extras, and those that they include."""
    found = set(names)
    for name in names:
        for each in EXTRAS[name]:
            if own := _OWN.fullmatch(each):
                found |= extras_of(own[1].split(","))
    return found


def lacking(text: str) -> list[str]:
    """Return the commands of a page that need more than the same block installs."""
    found: list[str] = []
    for block in _BLOCK.findall(text):
        installs = [each.split(",") for each in _INSTALL.findall(block)]
        if not installs:
            continue
        there = extras_of([name for each in installs for name in each])
        commands = [name for name in _COMMAND.findall(block) if name in COMMANDS]
        found += [name for name in commands if COMMANDS[name] not in there]
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_readme_has_every_extra() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install\n")[2]
    install = text.partition("\n## ")[0]
    named = set(_CODE.findall(install)) | set(re.findall(r"\.\[(\w+)\]", install))
    assert set(EXTRAS) - named == set()


def test_the_page_has_every_package_with_its_extra() -> None:
    lines = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines()
    rows = [cells(line) for line in lines if line.startswith("| `")]
    stated = {
        (package, extra)
        for package_cell, extra_cell, *_ in rows
        for package in _CODE.findall(package_cell)
        for extra in _CODE.findall(extra_cell) or [""]
    }
    wanted = {(package, "") for package in packages(PROJECT["dependencies"])}
    wanted |= {(package, extra) for extra in EXTRAS for package in packages(EXTRAS[extra])}
    assert wanted - stated == set()
    real = wanted | {(package, extra) for extra in EXTRAS for package in installed(extra)}
    assert stated - real == set()


def test_blocks_install_what_their_commands_need() -> None:
    missing = {page.name: lacking(page.read_text(encoding="utf-8")) for page in pages()}
    assert {page: found for page, found in missing.items() if found} == {}


def test_a_command_without_its_extra_is_found() -> None:
    block = "```sh\npip install 'mqlake[{}]'\n$ mqlake broker --store ./store\n```\n"
    assert lacking(block.format("celery")) == ["broker"]
    assert lacking(block.format("celery,store")) == lacking(block.format("duckdb")) == []


@pytest.mark.parametrize(("extra", "module"), PROGRAMS)
def test_a_program_starts_with_its_extra_alone(extra: str, module: str) -> None:
    every = {name for each in EXTRAS for name in installed(each)}
    absent = sorted(MODULES.get(name, name) for name in every - installed(extra))
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
