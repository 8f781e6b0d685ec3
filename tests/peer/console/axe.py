"""axe-core, which finds what keeps people from using a page: from npm, pinned, for tests only.

    python -m tests.peer.console.axe

downloads it into build/, as `scripts/install-peers` does.
"""

from __future__ import annotations

import fcntl
import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]
PLACE = ROOT / "build" / "axe-core"
VERSION = "4.14.1"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="


def axe_script() -> str:
    """Return the script.

    Raises:
        OSError: it is not there, and cannot be downloaded.
    """
    assets = _assets()
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assets.fetch(PLACE, (assets.Library("axe-core", VERSION, SHA512, ("axe.min.js",)),))
    return (PLACE / "axe.min.js").read_text()


def _assets() -> ModuleType:
    path = ROOT / "scripts" / "console_assets.py"
    found = importlib.util.spec_from_file_location("console_assets", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    axe_script()
