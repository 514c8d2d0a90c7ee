"""Repeats operations that fail for a passing reason. See README.md."""

import time


def call(operation, attempts=3, retry_on=(OSError,), first_delay=0.5, max_delay=8.0, sleep=time.sleep):
    """Returns the result of the first attempt that succeeds."""
    delay = first_delay
    for attempt in range(1, attempts + 1):
        try:
            return operation()
        except Exception:
            sleep(spread(min(delay, max_delay), attempt))
            delay *= 2


def spread(delay, attempt):
    """Returns the wait after a failed attempt."""
    return delay * (8 + attempt * 5 % 8) / 16
