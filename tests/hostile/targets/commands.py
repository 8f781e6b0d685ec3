"""The commands on mutated stores: exit codes, one line for a failure, and nothing but text."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout

from mqlake.cli.app import run
from tests.hostile import disk, stores
from tests.hostile.cases import Case, Target, require
from tests.hostile.mutate import NAMES

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def mutated(case: Case) -> None:
    """Run commands on a mutated store."""
    check(case, stores.mutated(case).files)


def check(case: Case, files: stores.Files) -> None:
    with disk.sandbox() as place:
        store = place / "store"
        disk.write(files, store)
        topic = case.dice.choice(NAMES).decode("utf-8", "replace").replace("\0", "")
        known = case.dice.choice(sorted({path.split("/")[1] for path in files if path[:4] == "cons"}
                                        or {"x"}))  # fmt: skip
        for command, *rest in (
            ("inspect",),
            ("verify", "--engine", "local"),
            ("query", "--topic", topic, "--key", topic),
            ("query", "--topic", known, "--queue", "0", "--offset", "0"),
            ("query", "--topic", known, "--begin", "0", "--end", str((1 << 63) - 1)),
        ):
            for style in ([], ["--json"]):
                _run(case, [command, str(store), *rest, *style])


def _run(case: Case, arguments: list[str]) -> None:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = run(arguments)
    out, err = (_text(stream) for stream in streams)
    case.seen[f"{arguments[0]} {code}"] += 1
    said = f"{arguments} says {err!r}"
    require(code in (0, 1, 2), f"exit code {code}: {said}")
    require(err.count("\n") == (code == 2), f"exit code {code}: {said}")
    require("unexpected" not in err, said)
    for text in (out, err):
        require(not _CONTROL.search(text), f"control characters: {_CONTROL.findall(text)} {said}")
    if "--json" in arguments and code != 2:
        json.loads(out)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


TARGETS = (
    Target(
        "commands",
        "`mqlake inspect`, `verify` and `query` on such stores: the exit code is 0, 1 or 2; with "
        "2, and only then, stderr has one line; JSON is valid; a terminal gets no control "
        "characters.",
        mutated,
        0.0005,
    ),
)
