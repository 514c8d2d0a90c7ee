"""Counts errors by day. See README.md."""

import re
from datetime import datetime, timezone

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(Z|[+-]\d\d:\d\d)? (\w+) ")


def errors_by_day(lines):
    """Returns the number of errors for each day that has some."""
    counts = {}
    for line in lines:
        match = LINE.match(line)
        if match and match.group(3) == "ERROR":
            day = day_of(match.group(1), match.group(2))
            counts[day] = counts.get(day, 0) + 1
    return dict(sorted(counts.items()))


def day_of(stamp, offset):
    """Returns the day of a timestamp in UTC."""
    offset = (offset or "").replace("Z", "+00:00")
    return datetime.fromisoformat(stamp + offset).astimezone(timezone.utc).date().isoformat()
