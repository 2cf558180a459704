"""Keys by which a person labels a video while it plays: keys.json of the page, BORIS' ethogram."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.annotations.formats.records import LONGEST_LABEL, quoted, text_problem
from actionspan.errors import InputError
from actionspan.storage.writing import read_json

_MOST = 200  # keys
_POINT = "Point event"  # begins the type of such a behaviour of BORIS


@dataclass(frozen=True, kw_only=True)
class LabelKey:
    """A key, the label of the events that it makes, and their subject, if it has one.

    An event of a `point` key is an instant; of any other it lasts as long as the key is held.
    """

    key: str
    label: str
    subject: str = ""
    point: bool = False


def keys_of(content: Any) -> list[LabelKey]:
    """Return the keys of a list of objects with `key`, `label`, `subject` and `point`.

    Raises:
        ValueError: Something is not one of them; the text names the key and the fault.
    """
    if not isinstance(content, list) or len(content) > _MOST:
        raise ValueError(f"not a list of at most {_MOST} keys")
    keys: dict[str, LabelKey] = {}
    for number, given in enumerate(content, start=1):
        if not isinstance(given, Mapping):
            raise ValueError(f"key no. {number} is not an object with key and label")
        key, point = given.get("key"), given.get("point", False)
        if not isinstance(key, str) or len(key) != 1 or not key.isalnum():
            raise ValueError(f"key no. {number}: {quoted(key)} is not one letter or digit")
        if key in keys:
            raise ValueError(f"key {quoted(key)} is there twice")
        texts = {name: given.get(name, "") for name in ("label", "subject")}
        for name, text in texts.items():
            if not isinstance(text, str) or len(text) > LONGEST_LABEL:
                limit = f"a text of at most {LONGEST_LABEL} characters"
                raise ValueError(f"key {quoted(key)}: its {name} is not {limit}")
            if problem := text_problem(text):
                raise ValueError(f"key {quoted(key)}: {name} {problem}")
        if not texts["label"].strip() or not isinstance(point, bool):
            wanted = "a label" if isinstance(point, bool) else "point true or false"
            raise ValueError(f"key {quoted(key)} needs {wanted}")
        keys[key] = LabelKey(key=key, point=point, **{n: t.strip() for n, t in texts.items()})
    return list(keys.values())


def read_keys(path: Path) -> list[LabelKey]:
    """Read keys.json, or the keys of the ethogram of a project of BORIS.

    Raises:
        InputError: The file is missing, or is neither.
    """
    content = read_json(path)
    if isinstance(content, dict) and isinstance(content.get("behaviors_conf"), dict):
        content = _of_ethogram(content["behaviors_conf"].values())
    try:
        return keys_of(content)
    except ValueError as error:
        wanted = "keys.json of the page, or a .boris file"
        raise InputError(f"{path}: {error}; {wanted} has the keys of labels") from None


def _of_ethogram(behaviours: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the behaviours with a letter or a digit; BORIS may give one to several, or F1."""
    found: dict[str, dict[str, Any]] = {}
    for each in behaviours:
        key = each.get("key") if isinstance(each, dict) else None
        if isinstance(key, str) and len(key) == 1 and key.isalnum():
            point = str(each.get("type")).startswith(_POINT)
            found.setdefault(key, {"key": key, "label": each.get("code"), "point": point})
    return list(found.values())


def first_of_each_label(keys: Sequence[LabelKey]) -> dict[str, LabelKey]:
    """Return keys by label; a behaviour of BORIS has one, the first that is listed."""
    by_label: dict[str, LabelKey] = {}
    for each in keys:
        by_label.setdefault(each.label, each)
    return by_label
