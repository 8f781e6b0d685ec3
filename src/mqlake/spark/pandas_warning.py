"""Suppress PySpark's warnings about features that mqlake does not use."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def ignore_pandas_warning() -> Generator[None]:
    """Suppress PySpark 4.2's warning about pandas 3: it only checks the version, and mqlake uses
    Arrow.
    """
    with warnings.catch_warnings():
        message = "PySpark does not yet fully support pandas"
        warnings.filterwarnings("ignore", message=message, category=FutureWarning)
        yield
