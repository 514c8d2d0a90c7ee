"""Keeps what customers ask for most often."""

import json
from pathlib import Path


class Questions:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.counts = {}

    def ask(self, text):
        key = text.strip().lower()
        self.counts[key] = self.counts.get(key, 0) + 1

    def most_asked(self, count):
        """The most frequent questions, the most frequent first."""
        ranked = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return [text for text, _ in ranked[:count]]

    def save(self, name):
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name for a file")
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(self.counts), encoding="utf-8")
        return path
