"""Reading times.tsv and timing.json: what is read, and the one line that names a mistake."""

import json

import pytest

from actionspan.errors import InputError
from actionspan.parallel.settings import EXCHANGES as TRAINED
from actionspan.scaling.times import EXCHANGES, TIMES_COLUMNS, Run, read_times, times_rows

HEADER = "exchange\tranks\tseconds\tt1\n"


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "times.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_rows_become_runs_and_other_columns_are_left_alone(table):
    text = "host\tt2\tseconds\tranks\texchange\trepeat\na\t0.5\t10.25\t2\tring\t1\n\n"
    text += "b\t\t 7 \t1\tNONE\t\n"
    assert read_times(table(text)) == [
        Run(exchange="ring", ranks=2, seconds=10.25, t2=0.5),
        Run(exchange="none", ranks=1, seconds=7.0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "exchange,ranks,seconds\nring,2,10\n",
        "\ufeffexchange\tranks\tseconds\r\nring\t2\t10\r\n",
        " Exchange , Ranks , Seconds \n ring , 2 , 10 \n",
        '\nexchange\tranks\tseconds\n"ring"\t2\t1e1',
    ],
)
def test_commas_windows_lines_and_spaces_are_fine(table, text):
    assert read_times(table(text)) == [Run(exchange="ring", ranks=2, seconds=10.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty; columns exchange, ranks, seconds"),
        (HEADER, "no rows; at least one run"),
        ("exchange\tseconds\nring\t2\n", "row 1: no column 'ranks'"),
        ("exchange ranks seconds\nring 2 10\n", "row 1: no column 'exchange'; a tab-separated"),
        ("exchange\tranks\tseconds\tranks\n", "row 1: two columns are named 'ranks'"),
        (HEADER + "ring\t2\t10\n", "row 2: 3 cells, the header has 4"),
        (HEADER + "ring\t2\t9\t1\n\nrign\t2\t9\t1\n", "row 4: exchange 'rign' is not one of none"),
        (HEADER + "\t2\t10\t1\n", "row 2: exchange '' is not one of"),
        (HEADER + "a\x1b[2J\t2\t10\t1\n", r"exchange 'a\\\\x1b\[2J' is not"),
        *(
            (HEADER + f"ring\t{ranks}\t10\t1\n", "row 2: ranks .* is not a whole number from 1 to")
            for ranks in ("0", "-1", "two", "2.5", "", "nan", "9999999", "9" * 5000)
        ),
        (HEADER + "none\t2\t10\t1\n", "row 2: exchange 'none' runs on 1 rank, not on 2"),
        *(
            (HEADER + f"ring\t2\t{seconds}\t1\n", "row 2: seconds .* is not a number above 0")
            for seconds in ("0", "-3", "nan", "inf", "-inf", "fast", "", "1e300", "1,5")
        ),
        *(
            (HEADER + f"ring\t2\t10\t{part}\n", "row 2: t1 .* is not a number of seconds, 0 or")
            for part in ("-1", "nan", "inf", "x")
        ),
        (b"exchange\tranks\tseconds\nr\xffng\t2\t1\n", "not UTF-8 text"),
        (HEADER + 'ring\t2\t"10\t' + "x" * 200_000, "row 2: not a table"),
    ],
)
def test_what_is_wrong_is_named_on_one_line(table, text, message):
    path = table(text)
    with pytest.raises(InputError, match=message) as caught:
        read_times(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_one_that_is_a_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_times(tmp_path / "times.tsv")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_times(tmp_path)


def test_every_exchange_that_trains_can_be_timed():
    assert {"none", *EXCHANGES} == set(TRAINED)


# timing.json

TIMING = {"exchange": "ring", "ranks": 2, "epochs": 20, "epochs_here": 20, "per_rank": []}
TIMING |= {"seconds": 12.5, "t1_seconds": 9.0, "t2_seconds": 1.5, "t3_seconds": 2}


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
        ({"epochs": None}, "epochs is None; it must be a whole number above 0"),
        ({"exchange": "sing"}, "exchange 'sing' is not one of none, ps"),
        ({"exchange": ["ring"]}, "exchange .* is not one of none"),
        ({"exchange": "none"}, "exchange 'none' runs on 1 rank, not on 2"),
        *(
            ({"ranks": ranks}, "ranks .* is not a whole number from 1 to")
            for ranks in (0, 2.0, True, None, "2")
        ),
        *(
            ({"seconds": seconds}, "seconds .* is not a number above 0")
            for seconds in (0, float("nan"), "9")
        ),
        ({"t2_seconds": -1.0}, "t2 '-1.0' is not a number of seconds, 0 or more"),
        ({"t1_seconds": "9"}, "t1 .* is not a number of seconds"),
        *(({key: ...}, f"no '{key}'") for key in TIMING if key != "per_rank"),
    ],
)
def test_a_timing_that_will_not_do_is_named(timing, changes, message):
    paths = [timing("good"), timing("bad", **changes)]
    with pytest.raises(InputError, match=message) as caught:
        times_rows(paths)
    assert str(caught.value).startswith(f"{paths[1]}: ")


def test_runs_of_another_length_and_lists_do_not_stand_in_one_table(timing):
    paths = [timing("a"), timing("b", epochs=10, epochs_here=10)]
    with pytest.raises(InputError, match=r"b.json: a run of 10 epochs, but .*a.json has 20"):
        times_rows(paths)
    (path := paths[0].with_name("list.json")).write_text("[]")
    with pytest.raises(InputError, match="not the timing of a training run"):
        times_rows([path])
