"""What a configuration leaves out has the value of config.yaml."""

from pathlib import Path

import yaml

from actionspan.plan.config import sections_text
from actionspan.plan.defaults import fill_in
from actionspan.plan.sections import PLUGGED
from plan.conftest import merged

CONFIG = Path(__file__).parents[2] / "config.yaml"


def test_an_empty_configuration_becomes_config_yaml():
    config: dict = {}
    fill_in(config)
    plugged = yaml.safe_load(sections_text(PLUGGED))
    assert config == merged(yaml.safe_load(CONFIG.read_text()), plugged)


def test_what_is_given_stays():
    config: dict = {"demo": {"videos": 3}, "video": "wrong", "unknown": {"key": 1}}
    fill_in(config)
    assert config["demo"]["videos"] == 3
    assert config["video"] == "wrong"
    assert config["unknown"] == {"key": 1}
    assert config["demo"]["seed"] == yaml.safe_load(CONFIG.read_text())["demo"]["seed"]
