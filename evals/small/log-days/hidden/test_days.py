import unittest

from logdays import errors_by_day


class DaysTest(unittest.TestCase):
    def check(self, stamp, day):
        self.assertEqual(errors_by_day([f"{stamp} ERROR x\n"]), {day: 1})

    def test_offsets(self):
        self.check("2024-03-01T23:30:00-05:00", "2024-03-02")
        self.check("2024-03-01T02:00:00+05:30", "2024-02-29")
        self.check("2024-12-31T19:00:00-05:00", "2025-01-01")
        self.check("2024-03-01T18:59:59-05:00", "2024-03-01")

    def test_utc(self):
        self.check("2024-03-01T23:59:59Z", "2024-03-01")
        self.check("2024-03-01T00:00:00Z", "2024-03-01")
        self.check("2024-03-01T00:00:00+00:00", "2024-03-01")

    def test_without_offset(self):
        self.check("2024-03-01T23:30:00", "2024-03-01")
        self.check("2024-03-01T00:30:00", "2024-03-01")

    def test_days_are_added_up_and_sorted(self):
        lines = ["2024-03-02T01:00:00Z ERROR a", "2024-03-01T23:30:00-05:00 ERROR b",
                 "2024-03-01T12:00:00 ERROR c", "2024-03-02T12:00:00Z INFO d", "  ERROR e"]
        self.assertEqual(list(errors_by_day(lines).items()), [("2024-03-01", 1), ("2024-03-02", 2)])


unittest.main()
