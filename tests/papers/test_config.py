"""The sections that the papers' experiments add to the configuration."""

import dataclasses

import pytest
import yaml

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.workflow.checking import check_config, check_settings
from actionspan.workflow.sections import OURS, PLUGGED, fill_in
from actionspan_papers.settings import SECTIONS
from workflow.test_config import section, with_value


def test_their_keys_and_defaults_can_be_printed(capsys):
    assert PLUGGED.keys() == SECTIONS.keys()
    assert not PLUGGED.keys() & OURS.keys()
    assert main(["papers", "config"]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    for name, (settings, _) in SECTIONS.items():
        given = section(config, name)
        for key, value in dataclasses.asdict(settings()).items():
            assert given[key] == (list(value) if isinstance(value, tuple) else value)
    fill_in(config)
    check_config(config, "printed.yaml")
    check_settings(config, "printed.yaml")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("papers.sbp.seeds", 0, "papers.sbp.seeds 0: from 1 to 1000"),
        ("papers.sbp.seed", 1, "papers.sbp.seed: unknown key; did you mean seeds?"),
        ("finetune.measure.repeats", "many", "finetune.measure.repeats 'many': a whole number"),
    ],
)
def test_a_wrong_key_or_value_is_one_line(key, value, expected):
    with pytest.raises(InputError) as caught:
        check_config(with_value(key, value), "my.yaml")
    assert str(caught.value).startswith(f"my.yaml: {expected}")


def test_a_value_out_of_a_settings_own_range_names_its_section():
    config = with_value("papers.partime.frames.height", 33)
    check_config(config, "my.yaml")
    with pytest.raises(InputError, match=r"^my.yaml: papers.partime.frames: height 33: "):
        check_settings(config, "my.yaml")
