"""A run within zones: each event says in which of them it is."""

import csv
import json

import pytest

from runs.conftest import copy_program


@pytest.mark.full
def test_events_of_a_run_have_their_zone(tmp_path):
    made = copy_program(tmp_path)
    sides = {"left": (0, 0.5), "right": (0.5, 1)}
    zones = [
        {"name": name, "points": [[a, 0], [b, 0], [b, 1], [a, 1]]} for name, (a, b) in sides.items()
    ]
    (tmp_path / "zones.json").write_text(json.dumps({"*": zones}))
    table = "results/proposals/span/events.csv"
    config = {"video": {"zones": "zones.json"}, "temporal": {"models": ["span"]}}
    made.make(table, config=config)
    rows = list(csv.DictReader(made.text(table).splitlines()))
    assert {row["zone"] for row in rows} == set(sides)

    (tmp_path / "zones.json").write_text(json.dumps({"*": zones[:1]}))
    planned = made.planned(table, config=config)
    assert {"video_frames", "proposals_select"} <= planned.keys()
