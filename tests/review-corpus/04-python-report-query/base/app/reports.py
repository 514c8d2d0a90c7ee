"""Monthly reports for the accounting team."""

import csv
from pathlib import Path

from app.db import connect

COLUMNS = ("number", "customer", "total_cents", "paid_at")


def invoices_of(customer, month):
    """All invoices of a customer in a month, oldest first."""
    query = (
        "SELECT number, customer, total_cents, paid_at FROM invoices "
        "WHERE customer = ? AND strftime('%Y-%m', issued_at) = ? ORDER BY number"
    )
    with connect() as connection:
        return connection.execute(query, (customer, month)).fetchall()


def total_of(invoices):
    return sum(row["total_cents"] for row in invoices)


def export(customer, month, folder):
    """Writes one CSV file and returns its path."""
    path = Path(folder) / f"{month}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in invoices_of(customer, month):
            writer.writerow([row[column] for column in COLUMNS])
    return path
