set -eu
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. python3 tests/test_cache.py
