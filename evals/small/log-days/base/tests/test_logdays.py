import unittest

from logdays import errors_by_day


class ErrorsByDayTest(unittest.TestCase):
    def test_sample(self):
        with open("data/sample.log", encoding="utf-8") as file:
            self.assertEqual(errors_by_day(file), {"2024-03-01": 1, "2024-03-02": 1})

    def test_other_lines(self):
        self.assertEqual(errors_by_day(["", "ERROR x", "2024-03-01T10:00:00Z WARN x"]), {})


unittest.main()
