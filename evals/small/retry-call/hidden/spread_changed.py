"""Exits 0 if the factors of the README's table are no longer computed by spread."""
import sys

sys.path.insert(0, ".")
try:
    from retry import spread

    waits = [spread(16, attempt) for attempt in range(1, 6)]
except Exception:
    waits = None
sys.exit(0 if waits != [13, 10, 15, 12, 9] else 1)
