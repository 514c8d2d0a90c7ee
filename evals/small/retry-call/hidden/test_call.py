import unittest

from retry import call


class Failing:
    def __init__(self, *results):
        self.results = list(results)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        result = self.results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result


class CallTest(unittest.TestCase):
    def test_other_exceptions_reach_the_caller_at_once(self):
        waits, operation = [], Failing(ValueError("bug"), 1)
        with self.assertRaisesRegex(ValueError, "bug"):
            call(operation, sleep=waits.append)
        self.assertEqual((operation.calls, waits), (1, []))

    def test_the_last_exception_reaches_the_caller(self):
        operation = Failing(OSError("one"), OSError("two"), ConnectionError("three"))
        with self.assertRaisesRegex(ConnectionError, "three"):
            call(operation, sleep=lambda seconds: None)
        self.assertEqual(operation.calls, 3)

    def test_no_wait_after_the_last_attempt(self):
        waits = []
        with self.assertRaises(OSError):
            call(Failing(OSError(), OSError()), attempts=2, first_delay=16, max_delay=99, sleep=waits.append)
        self.assertEqual(waits, [13.0])
        waits.clear()
        with self.assertRaises(OSError):
            call(Failing(OSError()), attempts=1, sleep=waits.append)
        self.assertEqual(waits, [])

    def test_waits(self):
        waits = []
        operation = Failing(*[OSError()] * 5, "ok")
        self.assertEqual(call(operation, attempts=6, first_delay=16, max_delay=64, sleep=waits.append), "ok")
        self.assertEqual(waits, [13.0, 20.0, 60.0, 48.0, 36.0])

    def test_other_classes_can_be_named(self):
        operation = Failing(KeyError("a"), TimeoutError(), None)
        self.assertIsNone(call(operation, retry_on=(KeyError, TimeoutError), sleep=lambda seconds: None))
        with self.assertRaises(OSError):
            call(Failing(OSError(), 1), retry_on=(KeyError,), sleep=lambda seconds: None)


unittest.main()
