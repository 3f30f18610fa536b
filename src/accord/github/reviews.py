"""Reviews over REST."""

from __future__ import annotations

from accord.github.rest import Rest


class ReviewMethods(Rest):
    """The requests about reviews of pull requests."""
