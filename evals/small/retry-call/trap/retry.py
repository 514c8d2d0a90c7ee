"""Repeats operations that fail for a passing reason. See README.md."""

import time


def call(operation, attempts=3, retry_on=(OSError,), first_delay=0.5, max_delay=8.0, sleep=time.sleep):
    """Returns the result of the first attempt that succeeds."""
    delay = first_delay
    last_error = None
    for attempt in range(1, attempts + 1):
        try:
            return operation()
        except retry_on as error:
            last_error = error
            sleep(spread(min(delay, max_delay), attempt))
            delay *= 2
    raise last_error


def spread(delay, attempt):
    """Returns the wait after a failed attempt."""
    return delay * (8 + attempt * 5 % 8) / 16
