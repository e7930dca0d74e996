"""Addresses as users write them, and where keys may be sent."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_LOOPBACK = re.compile(r"localhost|::1|127(\.\d{1,3}){3}")


def split(url: str) -> SplitResult:
    """Take an address apart. What is not an address has neither scheme nor host, and raises no ValueError."""
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.hostname  # read, and refused, when they are asked for
    except ValueError:
        return urlsplit("")
    return parts


def is_encrypted(url: SplitResult) -> bool:
    """Return whether what is sent there cannot be read on the way: by https, or by http on this machine."""
    return url.scheme == "https" or (
        url.scheme == "http" and _LOOPBACK.fullmatch(url.hostname or "") is not None
    )
