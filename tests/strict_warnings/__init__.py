"""Programs whose use of what is deprecated is an error, in all processes that they start."""

from __future__ import annotations

import os
from pathlib import Path


def strict_environment() -> dict[str, str]:
    """Return the variables with which Python imports `sitecustomize` of this folder."""
    before = os.environ.get("PYTHONPATH")
    folders = [str(Path(__file__).parent), *([before] if before else [])]
    return {"PYTHONPATH": os.pathsep.join(folders)}
