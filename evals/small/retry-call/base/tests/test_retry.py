import unittest

from retry import call


class CallTest(unittest.TestCase):
    def test_first_attempt_succeeds(self):
        waits = []
        self.assertEqual(call(lambda: 7, sleep=waits.append), 7)
        self.assertEqual(waits, [])

    def test_second_attempt_succeeds(self):
        waits, results = [], [OSError("no route"), "ok"]

        def operation():
            result = results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

        self.assertEqual(call(operation, first_delay=16, max_delay=99, sleep=waits.append), "ok")
        self.assertEqual(len(waits), 1)


unittest.main()
