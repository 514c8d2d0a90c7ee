"""A cache that drops the value unused for the longest time. See README.md."""

MISSING = object()


class Cache:
    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self.values = {}

    def get(self, key, default=None):
        value = self.values.pop(key, MISSING)
        if value is MISSING:
            return default
        self.values[key] = value
        return value

    def put(self, key, value):
        self.values.pop(key, None)
        if len(self.values) == self.capacity:
            del self.values[next(iter(self.values))]
        self.values[key] = value
