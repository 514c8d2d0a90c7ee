import unittest

from cache import Cache


class IsolationTest(unittest.TestCase):
    def test_a_list_that_was_got(self):
        cache = Cache(2)
        cache.put("a", [3, 1, 2])
        cache.get("a").sort()
        self.assertEqual(cache.get("a"), [3, 1, 2])

    def test_nested_values_that_were_got(self):
        cache = Cache(2)
        cache.put("a", {"rows": [{"name": "x"}], "pair": ([1], 2)})
        got = cache.get("a")
        got["rows"][0]["name"] = "y"
        got["rows"].append(1)
        got["pair"][0].append(2)
        self.assertEqual(cache.get("a"), {"rows": [{"name": "x"}], "pair": ([1], 2)})

    def test_values_that_were_put(self):
        cache = Cache(2)
        value = {"rows": [[1]]}
        cache.put("a", value)
        value["rows"][0].append(2)
        value["more"] = 1
        self.assertEqual(cache.get("a"), {"rows": [[1]]})

    def test_types_are_kept(self):
        cache = Cache(4)
        value = {1: (1, [2]), "s": {1, 2}, "n": None, "f": 1.5}
        cache.put("a", value)
        self.assertEqual(cache.get("a"), value)
        self.assertIs(type(cache.get("a")[1]), tuple)
        self.assertIs(type(cache.get("a")["s"]), set)

    def test_default_is_given_itself(self):
        default = []
        self.assertIs(Cache(1).get("a", default), default)

    def test_none_is_a_value(self):
        cache = Cache(1)
        cache.put("a", None)
        self.assertIsNone(cache.get("a", 5))

    def test_order_of_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.get("a")
        cache.put("c", 3)
        self.assertEqual([cache.get(key) for key in "abc"], [1, None, 3])
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("a", 3)
        cache.put("c", 4)
        self.assertEqual([cache.get(key) for key in "abc"], [3, None, 4])


unittest.main()
