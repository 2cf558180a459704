"""proposals.json and proposals.csv: form, order, and bad rows named in one line."""

import csv
import json
import re
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.times import frames_of
from actionspan.annotations.tables import Instance
from actionspan.errors import InputError
from actionspan.events.frames import rows
from actionspan.events.reading import Observed
from actionspan.proposals import segments
from actionspan.proposals.segments import (
    iterate_proposals,
    proposal_files,
    ranked_rows,
    read_proposals,
    result_rows,
    write_proposals,
)
from actionspan.storage import json_stream
from actionspan.storage.writing import read_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def test_activitynet_result_form_and_table(tmp_path):
    results = [
        ("a", result_rows([[0.5, 2.0], [1.0, 3.0]], [0.9, 0.25])),
        ('quote " and, comma', result_rows([], [])),
        ("ü", result_rows([[0.1, 0.2]], [1e-9])),
    ]
    write_proposals(iter(results), tmp_path / "p.json", tmp_path / "p.csv")
    assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == {
        "version": "actionspan 1",
        "results": {
            "a": [{"score": 0.9, "segment": [0.5, 2.0]}, {"score": 0.25, "segment": [1.0, 3.0]}],
            'quote " and, comma': [],
            "ü": [{"score": 1e-9, "segment": [0.1, 0.2]}],
        },
        "external_data": {},
    }
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["video_id", "rank", "start_seconds", "end_seconds", "score"],
            ["a", "1", "0.5", "2.0", "0.9"],
            ["a", "2", "1.0", "3.0", "0.25"],
            ["ü", "1", "0.1", "0.2", "1e-09"],
        ]
    assert read_proposals(tmp_path / "p.json") == {name: rows for name, rows in results}


def test_a_table_for_people_has_milliseconds_and_frames(tmp_path):
    rows = result_rows([[1 / 3, 2 / 3], [0.4, 0.401]], [0.2530864, 1 / 7])

    def frames(name, segment):
        return frames_of(segment, 30.0) if name == "a" else ()

    with proposal_files(tmp_path / "p.json", tmp_path / "p.csv", frames=frames) as write:
        write("a", rows)
        write("b", rows[:1])
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        assert [line[2:] for line in csv.reader(file)] == [
            ["start_seconds", "end_seconds", "score", "first_frame", "last_frame"],
            ["0.333", "0.667", "0.253086", "10", "19"],
            ["0.4", "0.401", "0.142857", "12", "12"],
            ["0.333", "0.667", "0.253086", "", ""],
        ]
    assert read_proposals(tmp_path / "p.json")["a"] == rows, "to the bit"


@given(st.floats(0, 20), st.floats(0, 20), st.sampled_from([23.976, 25.0, 30.0, 59.94]))
def test_frames_are_those_of_the_table_by_frame(one, other, rate):
    start, end = sorted((round(one, 3), round(other, 3)))
    instance = Instance(start=start, end=end, label="")
    video = Observed(video_id="a", seconds=21.0, rate=rate, instances=(instance,))
    _, applies = rows(video, [""], None)
    shown = np.flatnonzero(applies[:, 0])
    if start < end:
        assert frames_of((start, end), rate) == (shown[0], shown[-1])


def test_a_failure_leaves_neither_file(tmp_path):
    def results():
        yield "a", result_rows([[0.0, 1.0]], [0.5])
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write_proposals(results(), tmp_path / "p.json", tmp_path / "p.csv")
    assert list(tmp_path.iterdir()) == []


GOOD = {"score": 0.5, "segment": [0, 1]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"score": 0.5, "segment": [5, 2]}, "[5, 2] with score 0.5: start is after end"),
        ({"score": 0.5, "segment": [0, float("nan")]}, "[0, nan] with score 0.5: not finite"),
        ({"score": 0.5, "segment": [0, "1"]}, "not of the form"),
        ({"score": 0.5, "segment": [0, True]}, "not of the form"),
        ({"score": 0.5, "segment": [0, 10**400]}, "not of the form"),
        ({"score": 0.5, "segment": [0, 1, 2]}, "not of the form"),
        ({"score": 0.5}, "not of the form"),
        ({"segment": [0, 1]}, "not of the form"),
        ({"score": -1, "segment": [0, 1]}, "[0, 1] with score -1: a score of 0 or more is needed"),
        ({"score": float("inf"), "segment": [0, 1]}, "[0, 1] with score inf: not finite"),
        ([0, 1, 0.5], "not of the form"),
    ],
)
def test_a_bad_row_is_named_by_file_video_and_number(tmp_path, row, message):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"results": {"good": [GOOD], "bad": [GOOD, row]}}))
    with pytest.raises(InputError) as caught:
        read_proposals(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: video 'bad', proposal 2: ")
    assert message in line
    assert "\n" not in line


def test_scoring_takes_scores_below_0_and_nothing_else_that_is_refused(tmp_path):
    path = tmp_path / "logits.json"
    row = {"score": -3.5, "segment": [0, 1]}
    path.write_text(json.dumps({"results": {"a": [GOOD, row]}}))
    assert read_proposals(path, below_zero=True) == {"a": [GOOD, row]}
    path.write_text(json.dumps({"results": {"a": [GOOD, row | {"score": -float("inf")}]}}))
    with pytest.raises(InputError, match="proposal 2: .* with score -inf: not finite"):
        read_proposals(path, below_zero=True)


def test_the_public_sample_of_detections_is_read(shared_data):
    results = read_proposals(shared_data / "activitynet" / "sample_detection_prediction.json")
    assert any(row["segment"][0] == row["segment"][1] for rows in results.values() for row in rows)
    assert all("label" in row for rows in results.values() for row in rows)


@given(
    before=st.dictionaries(st.text(max_size=3).filter(lambda key: key != "results"), JSON),
    results=st.dictionaries(st.text(max_size=3), JSON),
    characters=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
)
def test_a_file_is_read_in_pieces_as_it_would_be_in_one(
    before, results, characters, indent, tmp_path_factory
):
    path = tmp_path_factory.mktemp("pieces") / "p.json"
    content = {**before, "results": results, "more": [1, {"results": 2}]}
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHARACTERS", characters)
        assert list(segments.read_results(path)) == list(results.items())
        # whatever is cut off is named as when the file is read at once
        cut = text[: len(text) * 2 // 3]
        path.write_text(cut, encoding="utf-8")
        with pytest.raises(InputError) as at_once:
            read_json(path)
        with pytest.raises(InputError, match=f"^{re.escape(str(at_once.value))}$"):
            list(segments.read_results(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            ('{"results": {"a": []}}' + end, "line 1: not JSON")
            for end in ("]", " {}", ", 1}", "\0")
        ),
        ('{"results": {"a": []}, "results": {"b": []}}', "two objects 'results'; keep one"),
        ("[]", "no proposals in it"),
        ("{}", "no proposals in it"),
        ('{"results": []}', "no proposals in it"),
        ('{"results": {"a": {}}}', "video 'a', proposals: a list is needed, not dict"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, message):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_proposals(path)


@pytest.mark.full
def test_memory_for_reading_does_not_grow_with_the_file(tmp_path):
    def peak(videos: int) -> int:
        path = tmp_path / "p.json"
        write_proposals(((f"v{n}", [GOOD] * 100) for n in range(videos)), path)
        tracemalloc.start()
        assert sum(len(rows) for _, rows in iterate_proposals(path)) == 100 * videos
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(4000) < 1.2 * peak(1000)


def test_an_event_of_unknown_chance_has_a_rank_and_no_score(tmp_path):
    rows = ranked_rows([[0.5, 2.0], [1.0, 3.0]])
    assert [row["rank"] for row in rows] == [1, 2]
    write_proposals([("a", rows)], tmp_path / "p.json", tmp_path / "p.csv")
    table = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert [(row["rank"], row["score"]) for row in table] == [("1", ""), ("2", "")]
    assert read_proposals(tmp_path / "p.json") == {"a": rows}


@given(
    st.lists(
        st.integers(0, 9)
        | st.sampled_from([8.0, -0.0, 0.0005, 1.0005, 2.5, 1e15, 1e16 + 2, 1e23])
        | st.floats(-99, 9e15)
    )
)
def test_times_are_written_as_they_are_rounded(times):
    given_rows = [{"score": 0.5, "segment": [time, time]} for time in times]
    with TemporaryDirectory() as folder:
        write_proposals([("a", given_rows)], Path(folder, "p.json"), Path(folder, "p.csv"))
        found = Path(folder, "p.csv").read_text().splitlines()[1:]
    cells = [str(round(time, 3)) for time in times]
    assert found == [f"a,{rank},{cell},{cell},0.5" for rank, cell in enumerate(cells, start=1)]
