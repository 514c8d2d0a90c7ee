import unittest

from cache import Cache


class CacheTest(unittest.TestCase):
    def test_get(self):
        cache = Cache(2)
        cache.put("a", [1])
        self.assertEqual(cache.get("a"), [1])
        self.assertEqual(cache.get("b", 5), 5)

    def test_the_oldest_value_is_dropped(self):
        cache = Cache(2)
        for key in "abc":
            cache.put(key, key)
        self.assertEqual([cache.get(key) for key in "abc"], [None, "b", "c"])


unittest.main()
