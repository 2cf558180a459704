"""Who does it and how: subjects and modifiers from BORIS to annotations and back."""

import csv
import itertools
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.cli import main
from actionspan.dataset.convert import facts
from actionspan.dataset.formats import boris
from actionspan.dataset.formats.records import RawInstance, Reading, Record
from actionspan.dataset.formats.registry import FORMATS, WRITABLE, read_annotation_file, sniffed
from actionspan.dataset.matching import IndexSettings, index_annotations
from actionspan.dataset.merge import merge
from actionspan.dataset.tables import read_annotations, write_annotations

SAMPLES = Path(__file__).parents[1] / "samples"
HOLD = ("activitynet", "anet_anno_action", "boris_project", "boris", "table")

word = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="/\\|"), min_size=1, max_size=4
)
times = st.integers(0, 40).map(lambda number: number / 4)
bouts = st.builds(
    lambda start, length, label, subject, modifiers: RawInstance(
        start=start,
        end=start + 0.25 + length,
        label=label,
        subject=subject,
        modifiers="|".join(modifiers),
    ),
    times,
    times,
    st.sampled_from(["groom", "rear"]),
    st.sampled_from(["", "mouse A", "mouse B"]) | word,
    st.lists(word, max_size=3),
)
records = st.builds(
    Record,
    video_id=st.just("cage 1"),
    # one subject does one thing in one way once at a time
    instances=st.lists(
        bouts, max_size=6, unique_by=lambda raw: (raw.label, raw.subject, raw.modifiers)
    ),
)


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise([*HOLD, HOLD[0]])])
@settings(max_examples=60)
@given(record=records)
def test_subjects_and_modifiers_come_back_over_two_forms(first, second, record):
    found = [record]
    for form in (first, second):
        text = WRITABLE[form].write(found)
        assert sniffed(text) == form
        reading = FORMATS[form].read("file", text)
        assert reading.rejections == []
        found = reading.records
    assert sorted(found[0].bouts()) == sorted(record.bouts())


@pytest.mark.parametrize("form", HOLD)
def test_without_them_a_file_is_as_it_was(form):
    raw = RawInstance(start=1, end=2, label="groom")
    text = WRITABLE[form].write([Record(video_id="a", instances=[raw])])
    if form == "boris":
        assert text.splitlines()[0].split(",") == boris.HEADER
    else:
        assert "modifiers" not in text.replace('"modifiers": {}', "")
        assert "subject" not in text.replace('"subjects_conf": {}', "")


def test_an_export_of_boris_becomes_annotations_and_boris_again(tmp_path, capsys):
    shutil.copy(SAMPLES / "boris_aggregated.csv", tmp_path / "in.csv")
    for words in (("in.csv", "a.json"), ("a.json", "b.boris"), ("a.json", "b.csv", "--to=boris")):
        assert (
            main(["dataset", "convert", *(str(tmp_path / each) for each in words[:2]), *words[2:]])
            == 0
        )
    assert "subjects" not in capsys.readouterr().err
    entries = json.loads((tmp_path / "a.json").read_text())["database"]
    assert entries["cage 1"]["annotations"] == [
        {"segment": [1.04, 2.5], "label": "groom", "subject": "mouse A"},
        {"segment": [61.007, 62], "label": "rear", "modifiers": "high"},
    ]
    project = json.loads((tmp_path / "b.boris").read_text())
    assert project["observations"]["cage 1"]["events"] == [
        [1.04, "mouse A", "groom", "", ""],
        [2.5, "mouse A", "groom", "", ""],
        [61.007, "", "rear", "high", ""],
        [62.0, "", "rear", "high", ""],
    ]
    assert [each["name"] for each in project["subjects_conf"].values()] == ["mouse A", "mouse B"]
    # BORIS offers the modifiers of the ethogram where somebody edits an event
    groom, rear = project["behaviors_conf"].values()
    assert groom["modifiers"] == {}
    assert [each["values"] for each in rear["modifiers"].values()] == [["high"]]
    rows = list(csv.DictReader((tmp_path / "b.csv").open(newline="")))
    assert [(row["Subject"], row["Modifier #1"]) for row in rows] == [
        ("mouse A", ""),
        ("No focal subject", "high"),
        ("mouse B", ""),
    ]


def test_the_modifiers_of_a_behaviour_are_a_set_for_each_place():
    instances = [
        RawInstance(start=place, end=place + 1, label="rear", modifiers=modifiers)
        for place, modifiers in enumerate(["high|left", "low", "high|right"])
    ]
    text = WRITABLE["boris_project"].write([Record(video_id="a", instances=instances)])
    (rear,) = json.loads(text)["behaviors_conf"].values()
    found = [each["values"] for each in rear["modifiers"].values()]
    assert found == [["high", "low"], ["left", "right"]]


def test_what_one_subject_cannot_do_at_once_is_of_another():
    instances = [
        RawInstance(start=start, end=9, label="groom", subject=subject)
        for start, subject in ((0, "A"), (1, "A"), (2, ""), (3, ""), (4, "A 2"))
    ]
    text = WRITABLE["boris_project"].write([Record(video_id="a", instances=instances)])
    (record,) = FORMATS["boris_project"].read("file", text).records
    found = {raw.start: raw.subject for raw in record.instances}
    assert found == {0: "A", 1: "A 2", 2: "", 3: "subject 2", 4: "A 2 2"}


def test_what_other_forms_cannot_hold_is_said(tmp_path, capsys):
    out = tmp_path / "via.json"
    assert main(["dataset", "convert", str(SAMPLES / "boris_old.csv"), str(out), "--to=via3"]) == 0
    assert "via3 cannot hold: " in (said := capsys.readouterr().err)
    assert "subjects and modifiers (1)" in said


@pytest.mark.parametrize("name", ["boris_aggregated.csv", "boris.boris"])
def test_a_subject_may_be_part_of_the_label(tmp_path, name):
    out = tmp_path / "a.json"
    assert main(["dataset", "convert", str(SAMPLES / name), str(out), "--subjects"]) == 0
    labels = {raw.label for record in read_annotation_file(out).records for raw in record.instances}
    assert {"groom (mouse A)", "groom (mouse B)"} <= labels
    assert labels <= {"groom (mouse A)", "groom (mouse B)", "rear"}
    assert "subject" not in out.read_text()  # else a second time would name it twice


@pytest.mark.parametrize("name", ["subject", "modifiers"])
@pytest.mark.parametrize(
    ("text", "what"),
    [("caf\udce9", "is not UTF-8 text"), ("x" * 1001, "is too long: 1001 characters")],
)
def test_a_bad_subject_is_a_line_that_names_it(name, text, what):
    with pytest.raises(ValueError, match=rf"^{name} '.*{what}"):
        RawInstance(start=0, end=1, label="run", **{name: text}).parsed()


def test_a_subject_in_json_that_is_no_text_is_none():
    entry = {
        "annotations": [{"segment": [0, 1], "label": "run", "subject": [1], "modifiers": None}]
    }
    (record,) = FORMATS["activitynet"].read("a", json.dumps({"database": {"v": entry}})).records
    assert record.bouts() == [(0, 1, "run", "", "")]


# ---- corrections and runs ----


def test_a_corrected_instance_keeps_who_did_it_and_how():
    def bout(start, end, label="groom", subject="", modifiers=""):
        return RawInstance(start=start, end=end, label=label, subject=subject, modifiers=modifiers)

    known = [bout(at, at + 4, subject="mouse A", modifiers="left") for at in (0, 10, 20, 30)]
    now = [
        bout(0, 4),  # accepted
        bout(11, 14),  # moved
        bout(20, 24, "rear"),  # another action is not done the same way
        bout(30, 34, subject="mouse B", modifiers="right"),
        bout(50, 54),  # added
    ]
    (merged,), _ = merge(
        [Record(video_id="a", instances=known)], [Record(video_id="a", instances=now)]
    )
    assert [(raw.subject, raw.modifiers) for raw in merged.instances] == [
        ("mouse A", "left"),
        ("mouse A", "left"),
        ("mouse A", ""),
        ("mouse B", "right"),
        ("", ""),
    ]


def test_the_annotations_of_a_run_keep_them(tmp_path):
    raw = RawInstance(start=1, end=2, label="groom", subject="mouse A", modifiers="left")
    record = Record(video_id="a", seconds=9, subset="training", instances=[raw])
    index = index_annotations(Reading(records=[record]), IndexSettings())
    write_annotations(tmp_path / "a.json", index.annotations)
    write_annotations(tmp_path / "b.json", read_annotations(tmp_path / "a.json"))
    (found,) = read_annotation_file(tmp_path / "b.json").records
    assert facts(found) == facts(record)
