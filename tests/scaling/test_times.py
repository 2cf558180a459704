"""Collecting timing.json files: the rows, and the runs that are refused."""

import json

import pytest

from actionspan.errors import InputError
from actionspan.scaling.times import TIMES_COLUMNS, times_rows

TIMING = {
    "exchange": "ring",
    "ranks": 2,
    "seconds": 12.5,
    "t1_seconds": 9.0,
    "t2_seconds": 1.5,
    "t3_seconds": 2,
    "epochs": 20,
    "epochs_here": 20,
    "per_rank": [],
}


@pytest.fixture
def timing(tmp_path):
    def write(name, **changes):
        path = tmp_path / f"{name}.json"
        kept = {key: value for key, value in (TIMING | changes).items() if value is not ...}
        path.write_text(json.dumps(kept))
        return path

    return write


def test_rows_follow_the_files_and_repeats_are_numbered(timing):
    paths = [
        timing("a"),
        timing("b", exchange="none", ranks=1, t2_seconds=0.0),
        timing("c", seconds=13.0),
        timing("d", ranks=4),
    ]
    assert len(TIMES_COLUMNS) == 7
    assert times_rows(paths) == [
        ("ring", 2, 1, 12.5, 9.0, 1.5, 2.0),
        ("none", 1, 1, 12.5, 9.0, 0.0, 2.0),
        ("ring", 2, 2, 13.0, 9.0, 1.5, 2.0),
        ("ring", 4, 1, 12.5, 9.0, 1.5, 2.0),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs_here": 7}, "only 7 of 20 epochs were timed, as the run was interrupted"),
        ({"epochs_here": 0}, "only 0 of 20 epochs"),
        ({"exchange": "sing"}, "exchange 'sing' is not one of none, ps"),
        ({"exchange": ["ring"]}, "exchange .* is not one of none"),
        ({"exchange": "none"}, "exchange 'none' runs on 1 rank, not on 2"),
        ({"ranks": 0}, "ranks is 0; it must be a whole number of at least 1"),
        ({"ranks": 2.0}, "ranks is 2.0; it must be a whole number"),
        ({"ranks": True}, "ranks is True; it must be a whole number"),
        ({"epochs": None}, "epochs is None; it must be a whole number"),
        ({"seconds": 0}, "seconds is 0; it must be above 0"),
        ({"seconds": float("nan")}, "seconds is nan; it must be a number of seconds"),
        ({"t2_seconds": -1.0}, "t2_seconds is -1.0; it must be a number of seconds"),
        ({"t1_seconds": "9"}, "t1_seconds is '9'; it must be a number of seconds"),
        *(({key: ...}, f"no '{key}'") for key in TIMING if key != "per_rank"),
    ],
)
def test_a_timing_that_will_not_do_is_named(timing, changes, message):
    paths = [timing("good"), timing("bad", **changes)]
    with pytest.raises(InputError, match=message) as caught:
        times_rows(paths)
    assert str(caught.value).startswith(f"{paths[1]}: ")


def test_runs_of_another_length_do_not_stand_in_one_table(timing):
    paths = [timing("a"), timing("b", epochs=10, epochs_here=10)]
    with pytest.raises(InputError, match=r"b.json: a run of 10 epochs, but .*a.json has 20"):
        times_rows(paths)


def test_a_list_is_no_timing(tmp_path):
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InputError, match="not the timing of a training run"):
        times_rows([tmp_path / "list.json"])
