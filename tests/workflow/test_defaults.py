"""What a configuration leaves out has its default."""

import yaml

from actionspan.workflow.config import full_text, sections_text
from actionspan.workflow.sections import PLUGGED, defaults, fill_in
from workflow.conftest import merged


def test_an_empty_configuration_becomes_what_is_printed():
    plugged = yaml.safe_load(sections_text(PLUGGED))
    assert defaults() == merged(yaml.safe_load(full_text()), plugged)


def test_what_is_given_stays():
    config: dict = {"demo": {"videos": 3}, "video": "wrong", "unknown": {"key": 1}}
    fill_in(config)
    assert config["demo"]["videos"] == 3
    assert config["video"] == "wrong"
    assert config["unknown"] == {"key": 1}
    assert config["demo"]["seed"] == defaults()["demo"]["seed"]
