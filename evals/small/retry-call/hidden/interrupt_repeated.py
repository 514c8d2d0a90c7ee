"""Exits 0 if an interrupt by the user is treated as a failed attempt."""
import sys

sys.path.insert(0, ".")
from retry import call

calls = []


def operation():
    calls.append(1)
    raise KeyboardInterrupt


try:
    call(operation, sleep=lambda seconds: None)
except BaseException:
    pass
sys.exit(0 if len(calls) > 1 else 1)
