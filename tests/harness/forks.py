"""What a test does in a forked process."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress


def in_a_fork(action: Callable[[], bool], seconds: int = 5) -> bool:
    """Whether an action in a forked process returned True, and in time."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        done = False
        with suppress(BaseException):
            done = action()
        os._exit(0 if done else 1)
    return os.waitpid(child, 0)[1] == 0
