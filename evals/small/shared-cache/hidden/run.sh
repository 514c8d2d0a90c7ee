set -eu
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. python3 hidden/test_isolation.py
