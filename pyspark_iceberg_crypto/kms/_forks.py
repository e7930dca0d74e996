"""Forked processes, which have one thread: what the others were doing is not completed there, and locks stay held."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What has locks, or connections that a forked process does not share."""

    def after_fork(self) -> None:
        """Begin again in a forked process."""
        ...


_LIVE: WeakSet[Forked] = WeakSet()


def follow(one: Forked) -> None:
    """Have an object begin again in each forked process."""
    _LIVE.add(one)


def _after_fork() -> None:
    for one in list(_LIVE):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
