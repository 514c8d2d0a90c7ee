import unittest

from recurring import days_in_month, recurring


class RecurringTest(unittest.TestCase):
    def test_monthly(self):
        self.assertEqual(recurring("2023-11-15", 3), ["2023-11-15", "2023-12-15", "2024-01-15"])

    def test_yearly(self):
        self.assertEqual(recurring("2023-03-01", 2, months=12), ["2023-03-01", "2024-03-01"])

    def test_no_dates(self):
        self.assertEqual(recurring("2023-03-01", 0), [])

    def test_days_in_month(self):
        self.assertEqual([days_in_month(2023, month) for month in (1, 2, 4, 12)], [31, 28, 30, 31])


unittest.main()
