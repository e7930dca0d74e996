"""Addresses as users write them."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def split(url: str) -> SplitResult:
    """Take an address apart; what is none has neither scheme nor host, and raises no ValueError."""
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.hostname  # read, and refused, when they are asked for
    except ValueError:
        return urlsplit("")
    return parts
