"""An error for the person who looks at the page."""

from __future__ import annotations

from mqlake.errors import MqlakeError


class PageError(MqlakeError):
    """What went wrong, and what to do; shown as a page.

    Attributes:
        advice: a sentence that says what to do next.
        status: of the HTTP response.
    """

    def __init__(self, message: str, advice: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.advice, self.status = advice, status
