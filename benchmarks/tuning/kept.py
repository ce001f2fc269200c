"""What a comparison has so far, in a JSON file: the same command goes on with it."""

import json
from pathlib import Path


class Kept:
    """The seconds of searches and the rows of the table; without a file for this run only."""

    def __init__(self, path, options):
        self.path = Path(path) if path else None
        self.command = {k: v for k, v in vars(options).items() if k not in ("json", "write")}
        self.seconds, self.rows = {}, []
        if self.path is None or not self.path.is_file():
            return
        known = json.loads(self.path.read_text())
        if known.get("command") != self.command:
            raise SystemExit(
                f"error: {path} holds what another command found: {known.get('command')}; "
                "name another file, or delete it"
            )
        self.seconds, self.rows = known["seconds"], known["rows"]

    def database(self, name):
        """Return where trials are kept: beside the file, or nowhere (None) without one."""
        return None if self.path is None else self.path.with_suffix(f".{name}.sqlite")

    def left(self, search, seconds):
        """Return what is left of the seconds of a search."""
        return max(0.0, seconds - self.seconds.get(search, 0.0))

    def spent(self, search, seconds):
        """Keep that a search took so many seconds more."""
        self.seconds[search] = self.seconds.get(search, 0.0) + seconds
        self._write()

    def row(self, name):
        """Return the row of a name, None where it is still to be made."""
        return next((row for row in self.rows if row["name"] == name), None)

    def add(self, row):
        """Keep a row."""
        self.rows.append(row)
        self._write()

    def _write(self):
        if self.path is None:
            return
        found = {"command": self.command, "seconds": self.seconds, "rows": self.rows}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(found, indent=1))
        new.replace(self.path)
