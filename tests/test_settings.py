"""Settings become flags of every type and come back; what is wrong is one line."""

import argparse
import re
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.settings import (
    Checked,
    add_settings,
    from_arguments,
    from_mapping,
    knobs_of,
    option,
)
from actionspan.workflow.runs import flags
from actionspan.workflow.sections import SECTIONS


@dataclass(frozen=True, kw_only=True)
class Knobs(Checked):
    batch_size: int = option(4, "how many at once", unit="videos", least=1)
    rate: float = option(0.5, "share, in 100% at most")
    name: str = option("bsn", "what it is called")
    on: bool = option(True, "whether it is on")
    off: bool = option(False, "whether it is off")
    folder: Path | None = option(None, "where")
    limit: float | None = option(None, "at most")
    kind: Literal["good", "better"] = option("good", "which")
    maybe: Literal["a", "b"] | None = option(None, "which, if any")
    level: Literal[1, 2, 3] = option(2, "which of three")
    share: float = option(0.5, "a share", least=0, below=1)
    share_or_all: float = option(1.0, "a share or all", above=0, most=1, also=-1)
    epochs: tuple[int, ...] = option((), "epochs", least=1, rising=True)
    rates: tuple[float, ...] = option((0.1,), "rates", above=0, fewest=1)
    names: tuple[Literal["a", "b"], ...] = option(("a", "b"), "names")
    words: tuple[str, ...] = option((), "words")
    city: str = option("Rome", "where", choices=("Rome", "Oslo"))
    command: str = option("run", "what", fewest=1)


def parse(*words: str) -> Knobs:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_settings(parser, Knobs)
    return from_arguments(Knobs, parser.parse_args(words))


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--batch-size 7", {"batch_size": 7}),
        ("--rate=1e-5", {"rate": 1e-5}),
        ("--rate=-2", {"rate": -2.0}),
        ("--name 'a b'", {"name": "a b"}),
        ("--no-on --off", {"on": False, "off": True}),
        ("--on --no-off", {"on": True, "off": False}),
        ("--folder a/b.pt", {"folder": Path("a/b.pt")}),
        ("--limit 3", {"limit": 3.0}),
        ("--kind better", {"kind": "better"}),
        ("--maybe b", {"maybe": "b"}),
        ("--level 3", {"level": 3}),
        ("--epochs 20 30", {"epochs": (20, 30)}),
        ("--epochs", {"epochs": ()}),
        ("--names b", {"names": ("b",)}),
        ("--names", {"names": ()}),
        ("--share-or-all=-1", {"share_or_all": -1.0}),
    ],
)
def test_a_flag_of_each_type(words, changed):
    made = asdict(parse(*shlex.split(words)))
    assert made == asdict(Knobs()) | changed
    assert {name: type(made[name]) for name in changed} == {
        name: type(value) for name, value in changed.items()
    }


@pytest.mark.parametrize(
    "flag",
    [
        *("--batch-size=1.5", "--rate=much", "--kind=best", "--maybe=c", "--level=4"),
        *("--limit=none", "--epochs=20,30", "--names=c"),
    ],
)
def test_argparse_refuses_what_does_not_convert(flag):
    with pytest.raises(argparse.ArgumentError, match=flag.partition("=")[0]):
        parse(flag)


def test_help_names_unit_and_default_and_takes_percent_signs():
    parser = argparse.ArgumentParser()
    add_settings(parser, Knobs)
    text = " ".join(parser.format_help().split())
    assert "settings (Knobs)" in text
    assert "how many at once [videos] (default: 4; at least 1)" in text
    assert "a share (default: 0.5; from 0 to below 1)" in text
    assert "a share or all (default: 1.0; above 0, at most 1, or -1)" in text
    assert "epochs (default: none; at least 1)" in text
    assert "names (default: a b)" in text
    assert "share, in 100% at most (default: 0.5)" in text
    assert "--no-on" in text


def test_a_mapping_gives_its_fields_and_the_rest_stays_default():
    values = {"batch_size": 2, "folder": "a/b", "limit": None, "kind": "better", "other": 1}
    made = from_mapping(Knobs, values)
    assert made == Knobs(batch_size=2, folder=Path("a/b"), kind="better")
    assert from_mapping(Knobs, {"folder": None}) == Knobs() == parse()


def test_a_type_that_is_no_flag_is_refused_when_the_command_is_built():
    @dataclass
    class Wrong:
        many: dict[str, int] = option(None, "a mapping")

    with pytest.raises(AssertionError):
        add_settings(argparse.ArgumentParser(), Wrong)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"batch_size": 0}, "batch_size 0: at least 1"),
        ({"batch_size": float("inf")}, "batch_size inf: a finite number at least 1"),
        ({"rate": float("nan")}, "rate nan: a finite number"),
        ({"limit": float("inf")}, "limit inf: a finite number"),
        ({"kind": "best"}, "kind 'best': one of good, better"),
        ({"kind": None}, "kind None: one of good, better"),
        ({"level": 4}, "level 4: one of 1, 2, 3"),
        ({"share": 1}, "share 1: from 0 to below 1"),
        ({"share_or_all": 0}, "share_or_all 0: above 0, at most 1, or -1"),
        ({"epochs": (3, 2)}, "epochs [3, 2]: rising numbers, each at least 1"),
        ({"epochs": (2, 2)}, "epochs [2, 2]: rising numbers, each at least 1"),
        ({"epochs": (0,)}, "epochs [0]: rising numbers, each at least 1"),
        ({"epochs": "20, 30"}, "epochs '20, 30': write a list: [20, 30]"),
        ({"rates": ()}, "rates []: different numbers, each above 0, one or more"),
        ({"rates": (0.1, 0.1)}, "rates [0.1, 0.1]: different numbers, each above 0, one or more"),
        ({"names": ("a", "c")}, "names 'c': one of a, b"),
        ({"city": "Bonn"}, "city 'Bonn': one of Rome, Oslo"),
        ({"command": ""}, "command '': a text of 1 or more characters"),
    ],
)
def test_what_is_not_allowed_is_one_line(changed, line):
    with pytest.raises(ValueError, match="^" + re.escape(line) + "$"):
        Knobs(**changed)
    with pytest.raises(ValueError, match=re.escape(line)):
        from_mapping(Knobs, changed)


def test_what_is_allowed_passes():
    for changed in (
        {"share": 0},
        {"share_or_all": -1},
        {"share_or_all": 1},
        {"epochs": (1, 2)},
        {"rates": (3.0, 1.0)},
        {"limit": None},
        {"maybe": None},
        {"city": "Oslo"},
    ):
        assert from_mapping(Knobs, changed) == Knobs(**changed)
    assert from_mapping(Knobs, {"epochs": [1, 2]}) == Knobs(epochs=(1, 2))


def test_a_word_may_stand_beside_numbers():
    @dataclass(frozen=True, kw_only=True)
    class Shards(Checked):
        several: int | Literal["auto"] = option("auto", "how many", least=1, also="auto")

    assert from_mapping(Shards, {"several": 7}) == Shards(several=7)
    for wrong, allowed in (("all", "a whole number at least 1"), (0, "at least 1")):
        with pytest.raises(ValueError, match=f"^several {wrong!r}: {allowed}, or auto$"):
            Shards(several=wrong)


def test_a_word_that_is_no_limit_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Wrong(Checked):
        many: int = option(1, "how many", at_least=1)

    with pytest.raises(TypeError, match="at_least"):
        Wrong()


WITH_FLAGS = [
    settings
    for section in SECTIONS.values()
    for settings in section.settings
    if settings.__module__ != "actionspan.workflow.settings"
]


@pytest.mark.parametrize("settings", WITH_FLAGS, ids=lambda settings: settings.__name__)
def test_every_settings_class_survives_flags_and_mappings(settings):
    default = settings()
    parser = argparse.ArgumentParser()
    add_settings(parser, settings)
    words = shlex.split(flags(asdict(default)))
    assert from_arguments(settings, parser.parse_args(words)) == default
    assert from_arguments(settings, parser.parse_args([])) == default
    assert from_mapping(settings, asdict(default)) == default
    assert parser.format_help()
    assert all(knob.help for knob in knobs_of(settings))


@pytest.mark.parametrize("settings", WITH_FLAGS, ids=lambda settings: settings.__name__)
def test_every_settings_class_refuses_what_its_bounds_and_choices_leave_out(settings):
    for knob in knobs_of(settings):
        limits = ((knob.above, 0), (knob.least, -1), (knob.below, 0), (knob.most, 1))
        wrong = [limit + step for limit, step in limits if limit is not None]
        allowed = re.escape(knob.bounds)
        if knob.choices and not knob.pattern:
            wrong, allowed = ["none of them"], "one of "
        for value in wrong:
            if value == knob.also:
                continue
            with pytest.raises(ValueError, match=f"^{knob.name} .*{allowed}"):
                settings(**{knob.name: (value,) if knob.many else value})


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
WORDS = TEXTS.filter(lambda word: not word.startswith("-"))


@given(
    st.fixed_dictionaries(
        {
            "epochs": st.lists(st.integers(1, 10**9), unique=True).map(sorted),
            "rates": st.lists(st.floats(1e-300, 1e300), unique=True, min_size=1),
            "names": st.lists(st.sampled_from(["a", "b"]), unique=True),
            "words": st.lists(WORDS, unique=True),
            "name": TEXTS,
            "on": st.booleans(),
            "batch_size": st.integers(1, 10**9),
            "limit": st.none() | st.floats(-1e300, 1e300),
        }
    ),
    st.permutations(["epochs", "rates", "names", "words", "name", "on", "batch_size", "limit"]),
)
def test_values_of_the_configuration_come_through_the_shell(values, order):
    """Lists too, empty or not, wherever they stand among the flags."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_settings(parser, Knobs)
    words = shlex.split(flags({key: values[key] for key in order}))
    made = from_arguments(Knobs, parser.parse_args(words))
    assert made == from_mapping(Knobs, values)


def test_only_the_keys_wanted_become_flags():
    section = {"on": True, "off": False, "none": None, "epochs": [1, 2], "two_words": "a b"}
    assert flags(section) == "--on --no-off --epochs 1 2 --two-words='a b'"
    assert flags(section, "epochs", "off") == "--no-off --epochs 1 2"
    assert flags({"epochs": []}) == "--epochs"


def test_a_field_without_a_flag_is_given_by_the_command():
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_settings(parser, Knobs, without=["batch_size"])
    assert "--batch-size" not in parser.format_help()
    arguments = parser.parse_args(["--rate=0.1"])
    assert from_arguments(Knobs, arguments, batch_size=9) == Knobs(batch_size=9, rate=0.1)
    with pytest.raises(InputError, match="batch_size 0: at least 1"):
        from_arguments(Knobs, arguments, batch_size=0)
