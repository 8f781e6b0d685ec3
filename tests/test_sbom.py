"""The bill of materials lists what mqlake needs at run time, and nothing that only tests need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mqlake

SCRIPT = Path(__file__).parents[1] / "scripts" / "sbom"


def bill(*extras: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, SCRIPT, *extras], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def names(found: dict[str, Any]) -> set[str]:
    return {one["name"] for one in found["components"]}


def test_everything() -> None:
    found = bill()
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    assert found["metadata"]["component"]["version"] == mqlake.__version__
    assert {"msgspec", "numba", "llvmlite", "pyarrow", "pyspark", "py4j", "cramjam"} <= names(found)
    assert not {"pytest", "hypothesis", "ruff", "pyright"} & names(found)
    references = {one["bom-ref"] for one in found["components"]}
    for one in found["dependencies"]:
        assert set(one["dependsOn"]) <= references | {found["metadata"]["component"]["bom-ref"]}
    assert all(
        one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}" for one in found["components"]
    )


def test_one_extra() -> None:
    found = names(bill("parquet"))
    assert {"msgspec", "numba", "pyarrow"} <= found
    assert "pyspark" not in found


def test_an_unknown_extra() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "sparc"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (2, "sbom: mqlake has no extra sparc\n")
