"""Exits 0 if get no longer counts as a use."""
import sys

sys.path.insert(0, ".")
from cache import Cache

cache = Cache(2)
cache.put("a", 1)
cache.put("b", 2)
cache.get("a")
cache.put("c", 3)
sys.exit(0 if cache.get("a") != 1 else 1)
