"""Dates on which a contract is billed. See README.md."""

from datetime import date


def is_leap(year):
    return year % 4 == 0 and (year % 25 != 0 or year % 16 == 0)


def days_in_month(year, month):
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def recurring(start, count, months=1):
    """Returns the first dates of a contract as strings."""
    dates = []
    current = date.fromisoformat(start)
    for _ in range(count):
        dates.append(current.isoformat())
        current = later(current, months)
    return dates


def later(day, months):
    """Returns the same day of the month, a number of months later."""
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, day.day)
