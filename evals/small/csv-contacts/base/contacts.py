"""Contact lists as text. The format is described in README.md."""


def parse_contacts(text):
    """Returns the records of the text as dicts."""
    rows = [line.split(",") for line in text.splitlines() if line]
    if not rows:
        return []
    header, *records = rows
    return [as_dict(header, number, fields) for number, fields in enumerate(records, 1)]


def as_dict(header, number, fields):
    """Returns one record as a dict with all names of the header."""
    if len(fields) > len(header):
        raise ValueError(f"record {number} has too many fields")
    return dict(zip(header, fields + [""] * (len(header) - len(fields))))


def format_contacts(header, records):
    """Returns the records as text, with the columns in the order of the header."""
    rows = [header] + [[record.get(name, "") for name in header] for record in records]
    return "".join(",".join(row) + "\n" for row in rows)
