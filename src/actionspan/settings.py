"""Settings as frozen dataclasses: default, unit, bounds, help and flag of each in one place."""

import argparse
import dataclasses
import itertools
import json
import math
import numbers
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from actionspan.errors import InputError, brief

# the types accepted for a value of each type; numpy's numbers are numbers
_TYPES: Mapping[type, Any] = {
    int: numbers.Integral,
    float: numbers.Real,
    str: str,
    bool: bool,
    Path: str | Path,
}
Settings = TypeVar("Settings")
_KNOBS: dict[type[Any], tuple["Knob", ...]] = {}  # of the settings that were asked for


def option(default: Any, help: str, **limits: Any) -> Any:
    """Declare a field of `Checked` settings: a key of config.yaml and a command-line flag.

    `help` is for `--help`, config.yaml and its schema; `limits` are the last fields of `Knob`.
    """
    return dataclasses.field(default=default, metadata={"help": help, **limits})


@dataclass(frozen=True, kw_only=True)
class Knob:
    """A field of settings: its annotation, and the declarations of `option`.

    Bounds are of a number, or of each number of a list. Numbers are finite, and a list holds
    no value twice.
    """

    name: str
    default: Any
    kind: type  # of the value, or of each item of a list
    many: bool  # a list (a tuple in the dataclass)
    optional: bool  # None is allowed
    help: str
    unit: str = ""  # e.g. "seconds"
    above: float | None = None  # the number is greater than this
    least: float | None = None  # the number is this or greater
    below: float | None = None  # the number is less than this
    most: float | None = None  # the number is this or less
    also: float | str | None = None  # a value that is allowed too, outside these bounds
    choices: tuple[Any, ...] = ()  # the values allowed; by default a Literal's
    pattern: str = ""  # of texts that are allowed in addition to the choices
    like: str = ""  # what these texts are, for messages
    fewest: int = 0  # items of a list, or characters of a text
    rising: bool = False  # each number of a list is greater than the number before

    @property
    def bounds(self) -> str:
        """What numbers are allowed, e.g. `from 0 to below 1`; empty if all are."""
        closed = self.least is not None and (self.below, self.most) != (None, None)
        named = {
            "above": self.above,
            "from" if closed else "at least": self.least,
            "to below" if closed else "below": self.below,
            "to" if closed else "at most": self.most,
        }
        separator = " " if closed else ", "
        words = separator.join(f"{w} {v:.10g}" for w, v in named.items() if v is not None)
        return words + (f", or {self.also}" if self.also is not None else "")

    @property
    def text(self) -> str:
        """The help with the unit."""
        return self.help + (f" [{self.unit}]" if self.unit else "")

    def check(self, value: Any) -> None:
        """Check a value.

        Raises:
            ValueError: It is not allowed.
        """
        if value is None and self.optional or self._allows(value):
            return
        if self.many and self.choices and isinstance(value, tuple | list):
            wrong = [item for item in value if not self._allows_one(item)]
            if wrong:
                raise ValueError(f"{self.name} {brief(wrong[0])}: {self._allowed_one(wrong[0])}")
        raise ValueError(f"{self.name} {brief(value)}: {self._allowed(value)}")

    def _allows(self, value: Any) -> bool:
        if not self.many:
            return self._allows_one(value)
        return (
            isinstance(value, tuple | list)
            and len(value) >= self.fewest
            and all(self._allows_one(item) for item in value)
            and len(set(value)) == len(value)
            and not (self.rising and any(a >= b for a, b in itertools.pairwise(value)))
        )

    def _allows_one(self, value: Any) -> bool:
        if isinstance(value, bool) and self.kind is not bool:
            return False
        if self.also is not None and isinstance(value, str | int | float) and value == self.also:
            return True
        if not isinstance(value, _TYPES[self.kind]):
            return False
        if self.choices:
            return value in self.choices or self._fits(value)
        if self.kind not in (int, float):
            return not isinstance(value, str) or len(value) >= self.fewest
        return (
            _is_finite(value)
            and (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def _fits(self, value: Any) -> bool:
        return bool(self.pattern) and re.fullmatch(self.pattern, value) is not None

    def _allowed(self, value: Any) -> str:
        """Return a description of the allowed values."""
        if not self.many:
            return self._allowed_one(value)
        if isinstance(value, str):
            return f"write a list: [{', '.join(value.replace(',', ' ').split())}]"
        if self.choices:
            count = "one or more" if self.fewest else "a list"
            return f"{count} of {', '.join(map(str, self.choices))}, each once"
        kind = "rising" if self.rising else "different"
        bounds = f", each {self.bounds}" if self.bounds else ""
        return f"{kind} numbers{bounds}{', one or more' * (self.fewest > 0)}"

    def _allowed_one(self, value: Any) -> str:
        choices = ", ".join(map(str, self.choices))
        if self.choices:
            return f"one of {choices}" + f", {self.like}" * bool(self.like)
        if self.kind not in (int, float):
            kinds = {str: f"a text of {self.fewest} or more characters", bool: "true or false"}
            return kinds.get(self.kind, "a path")
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if number and not _is_finite(value):
            return f"a finite number{' ' * bool(self.bounds)}{self.bounds}"
        if number and not (self.kind is int and not isinstance(value, numbers.Integral)):
            return self.bounds or "a number"
        return f"a {'whole ' * (self.kind is int)}number {self.bounds}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Settings with values that are checked against their declarations by `option`."""

    def __post_init__(self) -> None:
        for knob in knobs_of(type(self)):
            knob.check(getattr(self, knob.name))


def knobs_of(settings: type[Any]) -> tuple[Knob, ...]:
    """Return the fields of a settings dataclass."""
    if settings not in _KNOBS:
        hints = get_type_hints(settings)
        fields = dataclasses.fields(settings)
        _KNOBS[settings] = tuple(_knob(field, hints[field.name]) for field in fields)
    return _KNOBS[settings]


def _knob(field: "dataclasses.Field[Any]", annotation: Any) -> Knob:
    """Combine an option with its annotation: `X`, `X | None` or `tuple[X, ...]`."""
    declared = dict(field.metadata)
    arms = [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        arms = [arm for arm in get_args(annotation) if arm is not type(None)]
    if "also" in declared:  # int | Literal["auto"]
        arms = [arm for arm in arms if get_origin(arm) is not Literal]
    (kind,) = arms
    many = get_origin(kind) is tuple
    if many:
        kind, _ = get_args(kind)
    if get_origin(kind) is Literal:
        declared.setdefault("choices", get_args(kind))
        kind = type(get_args(kind)[0])
    assert kind in (int, float, str, bool, Path), f"{field.name}: no flag is a {annotation}"
    return Knob(
        name=field.name,
        default=field.default,
        kind=kind,
        many=many,
        optional=type(None) in get_args(annotation),
        **declared,
    )


def add_settings(
    parser: argparse.ArgumentParser, settings: type[Any], *, without: Sequence[str] = ()
) -> None:
    """Add one flag for each field of a settings dataclass: `batch_size` becomes `--batch-size`.

    A list has several words, or none: `--decay-epochs 20 30`. Fields named in `without` have no
    flag: the command gives their values to `from_arguments`.
    """
    group = parser.add_argument_group(f"settings ({settings.__name__})")
    for knob in knobs_of(settings):
        if knob.name in without:
            continue
        default = knob.default if knob.default is not None else "none"
        if knob.many:
            default = " ".join(map(str, knob.default)) or "none"
        notes = f"default: {default}" + (f"; {knob.bounds}" if knob.bounds else "")
        choices = None if knob.pattern else knob.choices or None
        how: dict[str, Any] = {"type": knob.kind, "choices": choices}
        if knob.kind is bool:
            how = {"action": argparse.BooleanOptionalAction}
        if knob.many:
            how["nargs"] = "*"
        group.add_argument(
            "--" + knob.name.replace("_", "-"),
            default=knob.default,
            help=f"{knob.text} ({notes})".replace("%", "%%"),
            **how,
        )


def at_least_one(flag: str, count: int) -> int:
    """Return the value of a flag that counts something.

    Raises:
        InputError: The value is below 1.
    """
    if count < 1:
        raise InputError(f"{flag} {count}: at least 1")
    return count


def from_arguments(
    settings: type[Settings], arguments: argparse.Namespace, **given: Any
) -> Settings:
    """Build the dataclass from parsed flags, and from `given` where a field has no flag.

    Raises:
        InputError: A value is not allowed (the dataclass's `__post_init__` raised ValueError).
    """
    try:
        return from_mapping(settings, {**vars(arguments), **given})
    except ValueError as error:
        raise InputError(str(error)) from None


def from_mapping(settings: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Build the dataclass from a mapping that holds its fields among others.

    Texts become paths and lists become tuples where a field wants them.

    Raises:
        ValueError: A value is not allowed.
    """
    chosen = {}
    for knob in knobs_of(settings):
        if knob.name in values:
            value = values[knob.name]
            if isinstance(value, str) and knob.kind is Path:
                value = Path(value)
            chosen[knob.name] = tuple(value) if isinstance(value, list) else value
    return settings(**chosen)


def to_json(before: str = "{}", **sections: Any) -> str:
    """Return settings by section as JSON, added to an earlier stage's."""
    made = {name: dataclasses.asdict(settings) for name, settings in sections.items()}
    return json.dumps(json.loads(before) | made, sort_keys=True, default=str)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number with too many digits for floating point
        return False
