"""Settings become flags of every type and come back; what is wrong is one line."""

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest

from actionspan.errors import InputError
from actionspan.plan.schema import SECTIONS
from actionspan.settings import add_arguments, from_arguments, from_mapping, option


@dataclass(frozen=True, kw_only=True)
class Knobs:
    batch_size: int = option(4, "how many at once", unit="videos")
    rate: float = option(0.5, "share, in 100% at most")
    name: str = option("bsn", "what it is called")
    on: bool = option(True, "whether it is on")
    off: bool = option(False, "whether it is off")
    folder: Path | None = option(None, "where")
    limit: float | None = option(None, "at most")
    kind: Literal["good", "better"] = option("good", "which")
    maybe: Literal["a", "b"] | None = option(None, "which, if any")
    level: Literal[1, 2, 3] = option(2, "which of three")

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size {self.batch_size}: at least 1")


def parse(*words: str) -> Knobs:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, Knobs)
    return from_arguments(Knobs, parser.parse_args(words))


def test_no_flags_give_the_defaults():
    assert parse() == Knobs()


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--batch-size", "7"], "batch_size", 7),
        (["--rate=1e-5"], "rate", 1e-5),
        (["--rate=-2"], "rate", -2.0),
        (["--name", "a b"], "name", "a b"),
        (["--no-on"], "on", False),
        (["--on"], "on", True),
        (["--off"], "off", True),
        (["--no-off"], "off", False),
        (["--folder", "a/b.pt"], "folder", Path("a/b.pt")),
        (["--limit", "3"], "limit", 3.0),
        (["--kind", "better"], "kind", "better"),
        (["--maybe", "b"], "maybe", "b"),
        (["--level", "3"], "level", 3),
    ],
)
def test_a_flag_of_each_type(words, field, value):
    made = asdict(parse(*words))
    assert made[field] == value
    assert type(made[field]) is type(value)
    rest = asdict(Knobs())
    assert {key: made[key] for key in made if key != field} == {
        key: rest[key] for key in rest if key != field
    }


@pytest.mark.parametrize(
    "words",
    [
        ["--batch-size", "1.5"],
        ["--rate", "much"],
        ["--kind", "best"],
        ["--maybe", "c"],
        ["--level", "4"],
        ["--limit", "none"],
    ],
)
def test_argparse_refuses_what_does_not_convert(words):
    with pytest.raises(argparse.ArgumentError, match=words[0]):
        parse(*words)


def test_the_checks_of_a_dataclass_become_one_line():
    with pytest.raises(InputError, match="^batch_size 0: at least 1$"):
        parse("--batch-size", "0")


def test_help_names_unit_and_default_and_takes_percent_signs():
    parser = argparse.ArgumentParser()
    add_arguments(parser, Knobs)
    text = " ".join(parser.format_help().split())
    assert "settings (Knobs)" in text
    assert "how many at once [videos] (default: 4)" in text
    assert "share, in 100% at most (default: 0.5)" in text
    assert "--no-on" in text


def test_a_mapping_gives_its_fields_and_the_rest_stays_default():
    values = {"batch_size": 2, "folder": "a/b", "limit": None, "kind": "better", "other": 1}
    made = from_mapping(Knobs, values)
    assert made == Knobs(batch_size=2, folder=Path("a/b"), kind="better")
    assert from_mapping(Knobs, {"folder": None}) == Knobs()


def test_a_mapping_is_checked():
    with pytest.raises(ValueError, match="batch_size 0"):
        from_mapping(Knobs, {"batch_size": 0})


def test_a_type_that_is_no_flag_is_refused_when_the_command_is_built():
    @dataclass
    class Wrong:
        many: list[int] = option(None, "a list")

    with pytest.raises(AssertionError):
        add_arguments(argparse.ArgumentParser(), Wrong)


@pytest.mark.parametrize("settings", SECTIONS.values(), ids=SECTIONS)
def test_every_settings_class_survives_flags_and_mappings(settings):
    default = settings()
    parser = argparse.ArgumentParser()
    add_arguments(parser, settings)
    words = []
    for key, value in asdict(default).items():
        flag = key.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words.append(f"--{flag}={value}")
    assert from_arguments(settings, parser.parse_args(words)) == default
    assert from_arguments(settings, parser.parse_args([])) == default
    assert from_mapping(settings, asdict(default)) == default
    assert parser.format_help()


def test_a_field_without_a_flag_is_given_by_the_command():
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, Knobs, without=["batch_size"])
    assert "--batch-size" not in parser.format_help()
    arguments = parser.parse_args(["--rate=0.1"])
    assert from_arguments(Knobs, arguments, batch_size=9) == Knobs(batch_size=9, rate=0.1)
    with pytest.raises(InputError, match="batch_size 0: at least 1"):
        from_arguments(Knobs, arguments, batch_size=0)
