import unittest

from recurring import days_in_month, recurring


class ShortMonthsTest(unittest.TestCase):
    def check(self, start, months, expected):
        self.assertEqual(recurring(start, len(expected), months), expected)

    def test_the_reported_case(self):
        self.check("2023-01-31", 1, ["2023-01-31", "2023-02-28"])

    def test_the_day_comes_back_after_a_short_month(self):
        self.check("2024-01-31", 1, ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31"])
        self.check("2023-12-30", 1, ["2023-12-30", "2024-01-30", "2024-02-29", "2024-03-30"])
        self.check("2023-01-29", 1, ["2023-01-29", "2023-02-28", "2023-03-29"])

    def test_quarterly(self):
        self.check("2023-08-31", 3, ["2023-08-31", "2023-11-30", "2024-02-29", "2024-05-31"])

    def test_yearly(self):
        self.check("2024-02-29", 12, ["2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"])

    def test_the_last_day_of_a_short_month_is_no_other_day(self):
        self.check("2023-02-28", 1, ["2023-02-28", "2023-03-28"])
        self.check("2023-04-30", 1, ["2023-04-30", "2023-05-30"])

    def test_leap_years(self):
        self.assertEqual([days_in_month(year, 2) for year in (1900, 2000, 2100, 2400, 2024, 2023)],
                         [28, 29, 28, 29, 29, 28])


unittest.main()
