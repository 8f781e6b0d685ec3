"""The wheel as a new user meets it, on one Python: `python -m tests.cli.first_hour PYTHON`.

Builds the wheel, installs it with all extras (or those of `--extras`) and the newest versions of
what they need into a new environment of PYTHON, follows docs/quickstart.md there, and prints what
each step cost. Nothing is compiled before: kernels and Spark start as on a new machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.cli.quickstart import Output, QuickstartStep, Reader, steps

ROOT = Path(__file__).parents[2]
_OWN = ("MQLAKE_KERNEL", "NUMBA_CACHE_DIR", "PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME")
"""Variables of this project's own environment, which a new user has not."""

_VERSIONS = """
import sys
from importlib.metadata import version
names = ("numba", "numpy", "pyarrow", "pyspark", "pandas", "deltalake", "pyiceberg")
print(f"Python {sys.version.split()[0]}", *(f"{name} {version(name)}" for name in names), sep=", ")
"""


def main() -> None:
    """Install the wheel, follow the page, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="the interpreter, for example python3.13")
    parser.add_argument("--extras", default=",".join(extras()), help="names, separated by commas")
    parser.add_argument("--sbom", type=Path, help="write the environment's bill of materials here")
    chosen = parser.parse_args()
    for name in _OWN:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        python = install(chosen.python, chosen.extras, place)
        if chosen.sbom is not None:
            with chosen.sbom.open("wb") as written:
                subprocess.run([python, ROOT / "scripts" / "sbom"], stdout=written, check=True)
        follow(python, place)


def extras() -> list[str]:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted(declared["optional-dependencies"])


def install(python: str, wanted: str, place: Path) -> Path:
    """Install the wheel into a new environment; return its interpreter."""
    uv = (sys.executable, "-m", "uv")
    installed = place / "environment" / "bin" / "python"
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place)
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = place.glob("*.whl")
    _run(*uv, "venv", "--quiet", "--python", python, place / "environment")
    requirement = f"mqlake[{wanted}] @ {wheel.as_uri()}"
    _run(*uv, "pip", "install", "--quiet", "--python", installed, requirement)
    _run(*uv, "pip", "check", "--quiet", "--python", installed)
    _run(installed.parent / "mqlake", "--version")
    _run(installed, "-c", _VERSIONS)
    return installed


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def follow(python: Path, place: Path) -> None:
    """Follow the page; print what each step cost, and what came together until then."""
    reader = Reader(python, place, {})
    print(f"\n{'wall s':>8}{'CPU s':>8}{'silent s':>9}{'all CPU s':>10}  step", flush=True)
    with reader.broker() as started:
        spent = _row("mqlake broker", started, 0.0)
        for step in steps():
            spent = _row(_title(step), reader.run(step), spent)


def _row(title: str, done: Output, spent: float) -> float:
    spent += done.cpu
    print(
        f"{done.wall:8.1f}{done.cpu:8.1f}{done.silence:9.1f}{spent:10.1f}  {title}",
        flush=True,
    )
    return spent


def _title(step: QuickstartStep) -> str:
    """Return the step's first command, or the first import that is not the standard library's."""
    lines = step.code.splitlines()
    if step.language == "sh":
        return " ".join(lines[-1].split()[:3])
    return next(line for line in lines if "import" in line and "asyncio" not in line)


if __name__ == "__main__":
    main()
