"""Settings as frozen dataclasses: one place for a knob's default, unit, help and flag."""

import argparse
import dataclasses
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from actionspan.errors import InputError

Settings = TypeVar("Settings")


def option(default: Any, help: str, *, unit: str = "") -> Any:
    """Declare a dataclass field that is also a command-line flag.

    Args:
        default: The value where none is given.
        help: One line for `--help` and the documentation.
        unit: The unit of the value, e.g. `"seconds"`.
    """
    return dataclasses.field(default=default, metadata={"help": help, "unit": unit})


def _value_type(annotation: Any) -> tuple[Any, list[Any] | None]:
    """Return the converter and the choices of a field's annotation (`X | None` counts as `X`)."""
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [arm for arm in get_args(annotation) if arm is not type(None)]
        assert len(inner) == 1, f"one type beside None, not {annotation}"
        return _value_type(inner[0])
    if get_origin(annotation) is Literal:
        choices = list(get_args(annotation))
        return type(choices[0]), choices
    assert annotation in (int, float, str, bool, Path), annotation
    return annotation, None


def add_settings(
    parser: argparse.ArgumentParser, settings: type[Any], *, without: Sequence[str] = ()
) -> None:
    """Add one flag for each field of a settings dataclass: `batch_size` becomes `--batch-size`.

    Args:
        parser: Of the command.
        settings: The dataclass.
        without: Fields that have no flag, whose values the command gives to `from_arguments`.
    """
    hints = get_type_hints(settings)
    group = parser.add_argument_group(f"settings ({settings.__name__})")
    for field in dataclasses.fields(settings):
        if field.name in without:
            continue
        convert, choices = _value_type(hints[field.name])
        flag = "--" + field.name.replace("_", "-")
        unit = f" [{field.metadata['unit']}]" if field.metadata["unit"] else ""
        text = f"{field.metadata['help']}{unit} (default: {field.default})".replace("%", "%%")
        if convert is bool:
            group.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=field.default, help=text
            )
        else:
            group.add_argument(
                flag, type=convert, choices=choices, default=field.default, help=text
            )


def at_least_one(flag: str, count: int) -> int:
    """Return the value of a flag that counts something.

    Raises:
        InputError: It is below 1.
    """
    if count < 1:
        raise InputError(f"{flag} {count}: at least 1")
    return count


def from_arguments(
    settings: type[Settings], arguments: argparse.Namespace, **given: Any
) -> Settings:
    """Build the dataclass from parsed flags; its own checks report a value out of range.

    Args:
        settings: The dataclass.
        arguments: Parsed by a parser with its flags.
        **given: Values of the fields that have no flag.

    Raises:
        InputError: A value is not allowed (the dataclass's `__post_init__` raised ValueError).
    """
    names = [field.name for field in dataclasses.fields(settings)]  # type: ignore[arg-type]
    read = {name: getattr(arguments, name) for name in names if name not in given}
    try:
        return settings(**read, **given)
    except ValueError as error:
        raise InputError(str(error)) from None


def from_mapping(settings: type[Settings], values: dict[str, Any]) -> Settings:
    """Build the dataclass from a mapping that holds its fields among others (paths as text)."""
    hints = get_type_hints(settings)
    chosen = {}
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        if field.name in values:
            value = values[field.name]
            convert, _ = _value_type(hints[field.name])
            chosen[field.name] = convert(value) if convert is Path and value is not None else value
    return settings(**chosen)
