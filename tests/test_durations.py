"""The first tier stays short: nobody runs tests that take a quarter of an hour."""

import json

from conftest import DURATIONS


def test_the_first_tier_has_no_long_file_and_is_short_as_a_whole() -> None:
    seconds = {name: first for name, (first, _) in json.loads(DURATIONS.read_text()).items()}
    assert {name: each for name, each in seconds.items() if each > 40} == {}
    assert sum(seconds.values()) < 900
