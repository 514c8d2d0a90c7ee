"""One place that knows where the database is."""

import os
import sqlite3
from contextlib import contextmanager


@contextmanager
def connect():
    connection = sqlite3.connect(os.environ["REPORTS_DB"])
    connection.row_factory = sqlite3.Row
    try:
        yield connection
    finally:
        connection.close()
