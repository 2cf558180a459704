"""Corrections put into annotations: what changes, what stays, and that twice is once."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.records import UNLABELLED, RawInstance, Record
from actionspan.annotations.formats.registry import WRITABLE, read_annotation_file
from actionspan.dataset.convert import facts
from actionspan.dataset.merge import merge
from worlds.command import actionspan


def listed(*segments):
    return [{"segment": [start, end], "label": label} for start, end, label in segments]


SAT = listed((1, 2, "sit"))
MANY = listed((1, 3, "jump"), (10, 20, "jump"), (30, 40, "fall"), (50, 60, "fall"))
KNOWN: dict[str, Any] = {
    "version": "actionspan 1",
    "name": "the yard",
    "taxonomy": [],
    "database": {
        "a": {"subset": "training", "duration": 90.5, "annotations": MANY},
        "v_b": {"subset": "validation", "duration": 20, "annotations": SAT},
        "c": {"subset": "training", "duration": 20, "annotations": SAT},
    },
}
CORRECTIONS = """video,start,end,label,status
a,1,3,jump,accepted
a,0:11,20,,moved
a,30,40,sit,accepted
a,50,60,fall,rejected
a,70,71,jump,added
b,,,,none
new,0,1,,added
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "annotations.json").write_text(json.dumps(KNOWN))
    (tmp_path / "corrections.csv").write_text(CORRECTIONS)
    return tmp_path


def run(folder, *names, out="out.json", more=()):
    files = [folder / name for name in names]
    return actionspan("dataset", "merge", *files, "--out", folder / out, *more)


def test_a_corrected_video_has_the_instances_of_its_correction(files, capsys):
    assert run(files, "annotations.json", "corrections.csv") == 0
    out = files / "out.json"
    assert capsys.readouterr().out == (
        f"{out}: 4 videos, activitynet; 3 videos corrected (1 new): instances 2 added, 1 moved, "
        "1 with another label, 2 removed, 1 as before\n"
    )
    content = json.loads(out.read_text())
    assert content["name"] == "the yard"
    # the label of the moved one was not changed
    now = listed((1, 3, "jump"), (11, 20, "jump"), (30, 40, "sit"), (70, 71, "jump"))
    assert content["database"] == {
        "a": {
            "subset": "training",
            "duration": 90.5,
            "annotations": now,
        },
        "v_b": {"subset": "validation", "duration": 20, "annotations": []},
        "c": KNOWN["database"]["c"],
        "new": {"annotations": listed((0, 1, UNLABELLED))},
    }
    first = out.read_bytes()
    assert run(files, "out.json", "corrections.csv", out="again.json") == 0
    assert (files / "again.json").read_bytes() == first
    assert "0 added, 0 moved, 0 with another label, 0 removed, 5 as" in capsys.readouterr().out


def test_the_annotations_are_only_overwritten_on_demand(files, capsys):
    before = (files / "annotations.json").read_bytes()
    given = (files, "annotations.json", "corrections.csv")
    assert run(*given, out="annotations.json") == 2
    assert "holds the annotations; --overwrite replaces them" in capsys.readouterr().err
    assert run(*given, out="corrections.csv") == 2
    assert "corrections.csv: is an input of this command" in capsys.readouterr().err
    assert (files / "annotations.json").read_bytes() == before
    assert run(*given, out="annotations.json", more=["--overwrite"]) == 0
    assert "new" in json.loads((files / "annotations.json").read_text())["database"]
    # and a folder
    more = ["--to", "elan"]
    assert run(*given, out="eaf", more=more) == 0
    assert run(files, "eaf", "corrections.csv", out="eaf", more=more) == 2
    assert run(files, "eaf", "corrections.csv", out="eaf", more=[*more, "--overwrite"]) == 0


def test_of_several_corrections_of_a_video_the_last_counts(files, capsys):
    (files / "later.csv").write_text(
        "video_id,rank,start_seconds,end_seconds,score\na,1,12,20,0.5\nv_b,1,1,2,0.4\n"
    )
    assert run(files, "annotations.json", "corrections.csv", "later.csv", out="out.csv") == 0
    said = capsys.readouterr().err
    assert said.startswith("1 video corrected more than once, of which the last counts: a\n")
    rows = (files / "out.csv").read_text().splitlines()
    assert rows[1:3] == ["a,12.0,20.0,jump,training,90.5", "v_b,1.0,2.0,sit,validation,20.0"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("v_b,1,99,run,added\n", "row 2: segment 1…99 s is outside the video, 0…20 s\n"),
        ("a,2,1,jump,moved\n", "row 2: start 2 is not before end 1"),
        ("a,x,1,jump,moved\n", "row 2: start 'x' is not a time: seconds, m:ss or h:mm:ss"),
        ("b,1,2,x,added\na,1,2,jump,done\n", "row 3: status 'done'; known are accepted, moved"),
        ("a,1,2,jump\n", "row 2: 4 values in a table of 5 columns"),
    ],
)
def test_a_bad_row_of_corrections_ends_it_with_a_line(files, capsys, rows, message):
    (files / "bad.csv").write_text(f"video,start,end,label,status\n{rows}")
    assert run(files, "annotations.json", "bad.csv") == 2
    (line,) = capsys.readouterr().err.splitlines(keepends=True)
    assert f"{files / 'bad.csv'}: {message}" in line
    assert not (files / "out.json").exists()


def test_what_the_form_cannot_hold_and_bad_rows_of_the_annotations_are_said(files, capsys):
    (files / "mine.csv").write_text("video,start,end,label,subset\na,1,2,run,val\na,x,2,run,val\n")
    assert run(files, "mine.csv", "corrections.csv", out="eaf", more=["--to", "elan"]) == 0
    assert capsys.readouterr().err == (
        f"left out {files / 'mine.csv'}: row 3: start 'x' is not a time: seconds, m:ss or h:mm:ss\n"
        f"{files / 'eaf'}: videos of which elan cannot hold: subset (1)\n"
    )
    records = read_annotation_file(files / "eaf").records
    assert sorted(record.video_id for record in records) == ["a", "b", "new"]


times = st.integers(0, 12)
labels = st.sampled_from(["run", "sit", UNLABELLED])
instances = st.builds(
    lambda start, length, label: RawInstance(start=start, end=start + length, label=label),
    times,
    st.integers(1, 6),
    labels,
)
sets = st.lists(
    st.builds(
        Record,
        video_id=st.sampled_from(["a", "v_a", "b", "c"]),
        subset=st.sampled_from(["training", "validation"]),
        seconds=st.sampled_from([0.0, 20.0]),
        instances=st.lists(instances, max_size=5),
    ),
    max_size=4,
    unique_by=lambda record: record.video_id,
)


@given(known=sets, corrections=sets)
def test_a_merge_keeps_what_is_not_corrected_and_twice_is_once(known, corrections):
    merged, changes = merge(known, corrections)
    again, none = merge(merged, corrections)
    assert [facts(record) for record in again] == [facts(record) for record in merged]
    one, other = (WRITABLE["activitynet"].write(each) for each in (merged, again))
    assert one == other
    assert (none.new, none.added, none.moved, none.relabelled, none.removed) == (0, 0, 0, 0, 0)
    before = {record.video_id: record for record in known}
    after = {record.video_id: record for record in merged}
    assert set(before) <= set(after)
    assert changes.corrected <= len(corrections)
    for video_id, record in before.items():
        assert after[video_id].subset == record.subset
        assert after[video_id].seconds in (record.seconds, 20.0)
    count = sum(len(record.instances) for record in known) + changes.added - changes.removed
    assert count == sum(len(record.instances) for record in merged)
    for record in corrections:
        if record.video_id in before and record.video_id not in ("a", "v_a"):
            found = [segment[:2] for segment in after[record.video_id].parsed()]
            assert found == sorted(segment[:2] for segment in record.parsed())


def test_equal_segments_with_two_labels_stay_apart():
    known = [Record(video_id="a", instances=[RawInstance(start=0, end=9, label="sit")])]
    both = [RawInstance(start=0, end=9, label=label) for label in ("run", UNLABELLED)]
    merged, _ = merge(known, [Record(video_id="a", instances=both)])
    again, _ = merge(merged, [Record(video_id="a", instances=list(reversed(both)))])
    assert facts(merged[0]) == facts(again[0])
    assert replace(merged[0], instances=[]) == replace(known[0], instances=[])


def test_an_id_from_json_never_names_a_file_elsewhere(files, capsys):
    entry = {"subset": "training", "annotations": []}
    (files / "bad.json").write_text(json.dumps({"database": {"../../x": entry}}))
    assert run(files, "annotations.json", "bad.json", out="eaf", more=["--to", "elan"]) == 2
    assert "video id '../../x' cannot be a file's stem" in capsys.readouterr().err


def test_a_video_that_has_lost_all_its_rows_is_there_again_only_if_it_is_corrected(files, capsys):
    table = files / "mine.csv"
    table.write_text(
        "video,start,end,label,subset\na,-1,2,run,val\nlost,2,1,run,val\nkept,1,2,run,train\n"
    )
    (files / "right.csv").write_text("video,start,end,label,status\na,1,2,run,added\n")
    assert run(files, "mine.csv", "right.csv", out="out.csv") == 0
    rows = (files / "out.csv").read_text().splitlines()[1:]
    assert rows == ["kept,1.0,2.0,run,training", "a,1.0,2.0,run,validation"]
    assert "no row of video 'lost' is left" in capsys.readouterr().err
