"""The keys of labels of the served page: keys.json in its folder."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from actionspan.annotations.keys import keys_of, read_keys
from actionspan.errors import JobError
from actionspan.storage.writing import write_text


class LabelKeys:
    """The keys in a folder, on the disk before a call returns.

    Args:
        folder: Of keys.json, which is made at the first change.
        given: A file with keys that replace it, if there is one; see `read_keys`.

    Raises:
        InputError: A file is not one of keys.
    """

    def __init__(self, folder: Path, given: Path | None = None) -> None:
        self.path = folder / "keys.json"
        self._keys = read_keys(self.path) if self.path.exists() else []
        if given is not None:
            self._keys = read_keys(given)
            self._write()

    def all(self) -> list[dict[str, Any]]:
        """Return the keys as the page has them."""
        return [asdict(each) for each in self._keys]

    def save(self, content: Any) -> None:
        """Keep the keys that the page has.

        Raises:
            ValueError: They are not keys; see `keys_of`.
            JobError: Nothing can be written.
        """
        self._keys = keys_of(content)
        self._write()

    def _write(self) -> None:
        try:
            write_text(self.path, json.dumps(self.all(), ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise JobError(f"{self.path}: {error.strerror}") from None
