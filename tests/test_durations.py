"""The first tier stays short: nobody runs tests that take a quarter of an hour."""

import json

from conftest import DURATIONS

# Seconds in three processes on two cores. Only less is allowed; the aim is 40 and 900.
LONGEST, SUM = 50, 1050


def test_the_first_tier_has_no_long_file_and_is_short_as_a_whole() -> None:
    seconds = {name: first for name, (first, _) in json.loads(DURATIONS.read_text()).items()}
    assert {name: each for name, each in seconds.items() if each > LONGEST} == {}
    assert sum(seconds.values()) < SUM
