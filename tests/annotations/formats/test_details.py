"""Who does it and how: subjects and modifiers from BORIS to annotations and back."""

import csv
import itertools
import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats import boris, boris_project
from actionspan.annotations.formats.records import RawInstance, Reading, Record
from actionspan.annotations.formats.registry import FORMATS, WRITABLE, read_annotation_file, sniffed
from actionspan.annotations.keys import LabelKey
from actionspan.annotations.tables import read_annotations, write_annotations
from actionspan.dataset.convert import facts
from actionspan.dataset.matching import IndexSettings, index_annotations
from actionspan.dataset.merge import merge
from tiers import examples
from worlds.command import actionspan

SAMPLES = Path(__file__).parents[1] / "samples"
HOLD = ("activitynet", "anet_anno_action", "boris_project", "boris", "table")

word = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="/\\|"), min_size=1, max_size=4
)


def bout(start, end, label="groom", subject="", modifiers=""):
    return RawInstance(start=start, end=end, label=label, subject=subject, modifiers=modifiers)


def record_of(*bouts):
    return Record(video_id="a", instances=list(bouts))


quarters = st.integers(0, 40).map(lambda number: number / 4)
bouts = st.builds(
    lambda start, length, *rest: bout(start, start + 0.25 + length, *rest),
    *(quarters, quarters, st.sampled_from(["groom", "rear"])),
    st.sampled_from(["", "mouse A", "mouse B"]) | word,
    st.lists(word, max_size=3).map("|".join),
)
# one subject does one thing in one way once at a time
alone = st.lists(bouts, max_size=6, unique_by=lambda raw: (raw.label, raw.subject, raw.modifiers))


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise([*HOLD, HOLD[0]])])
@examples(60)
@given(record=alone.map(lambda each: record_of(*each)))
def test_subjects_and_modifiers_come_back_over_two_forms(first, second, record):
    found = [record]
    for form in (first, second):
        text = WRITABLE[form].write(found)
        assert sniffed(text) == form
        reading = FORMATS[form].read("file", text)
        assert reading.rejections == []
        found = reading.records
    assert sorted(found[0].bouts()) == sorted(record.bouts())


@examples(60)
@given(record=st.lists(bouts, max_size=8).map(lambda each: record_of(*each)))
def test_labels_and_subjects_come_back_from_tiers_of_elan(record):
    text = WRITABLE["elan"].write([record])
    tiers = re.findall(r'<TIER [^>]*TIER_ID="([^"]*)"', text)
    assert len(set(tiers)) == len(tiers) > 0
    (found,) = FORMATS["elan"].read("file", text).records
    assert sorted(bout[:4] for bout in found.bouts()) == sorted(bout[:4] for bout in record.bouts())


def test_tiers_of_elan_have_names_of_their_own():
    given_bouts = [bout(1, 3, subject=subject) for subject in ("", "A", "A", "A 2", "")]
    text = WRITABLE["elan"].write([record_of(*given_bouts)])
    tiers = re.findall(r'<TIER [^>]*?(?:PARTICIPANT="([^"]*)" )?TIER_ID="([^"]*)"', text)
    assert tiers == [
        *(("", "actions"), ("", "actions 2")),
        *(("A", "actions@A"), ("A", "actions@A 2"), ("A 2", "actions@A 2 2")),
    ]


def test_keys_are_the_ethogram_of_boris_and_a_point_key_makes_point_events():
    keys = [
        LabelKey(key="x", label="groom", subject="mouse B"),
        LabelKey(key="y", label="groom"),
        LabelKey(key="a", label="lever", point=True),
        LabelKey(key="q", label="sleep"),
    ]
    instances = [bout(1, 2, "groom"), bout(1.5, 1.54, "lever"), bout(3, 4, "rear")]
    text = boris_project.write([record_of(*instances)], keys)
    project = json.loads(text)
    found = {
        each["code"]: (each["key"], each["type"]) for each in project["behaviors_conf"].values()
    }
    assert found == {
        "groom": ("x", "State event"),
        "lever": ("a", "Point event"),
        "rear": ("b", "State event"),  # a is taken
        "sleep": ("q", "State event"),
    }
    assert [each["name"] for each in project["subjects_conf"].values()] == ["mouse B"]
    events = [(event[0], event[2]) for event in project["observations"]["a"]["events"]]
    assert events == [(1, "groom"), (1.5, "lever"), (2, "groom"), (3, "rear"), (4, "rear")]


@pytest.mark.parametrize("form", HOLD)
def test_without_them_a_file_is_as_it_was(form):
    text = WRITABLE[form].write([record_of(bout(1, 2))])
    if form == "boris":
        assert text.splitlines()[0].split(",") == boris.HEADER
    else:
        assert "modifiers" not in text.replace('"modifiers": {}', "")
        assert "subject" not in text.replace('"subjects_conf": {}', "")


def test_an_export_of_boris_becomes_annotations_and_boris_again(tmp_path, capsys):
    shutil.copy(SAMPLES / "boris_aggregated.csv", tmp_path / "in.csv")
    for source, out, *more in (("in", "a.json"), ("a", "b.boris"), ("a", "b.csv", "--to=boris")):
        (given_file,) = tmp_path.glob(f"{source}.*")
        assert actionspan("dataset", "convert", given_file, tmp_path / out, *more) == 0
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
    found = [(row["Subject"], row["Modifier #1"]) for row in rows]
    assert found == [("mouse A", ""), ("No focal subject", "high"), ("mouse B", "")]


def test_the_modifiers_of_a_behaviour_are_a_set_for_each_place():
    ways = enumerate(["high|left", "low", "high|right"])
    instances = [bout(at, at + 1, "rear", modifiers=modifiers) for at, modifiers in ways]
    text = WRITABLE["boris_project"].write([record_of(*instances)])
    (rear,) = json.loads(text)["behaviors_conf"].values()
    found = [each["values"] for each in rear["modifiers"].values()]
    assert found == [["high", "low"], ["left", "right"]]


def test_what_one_subject_cannot_do_at_once_is_of_another():
    subjects = enumerate(["A", "A", "", "", "A 2"])
    record = record_of(*(bout(start, 9, subject=subject) for start, subject in subjects))
    text = WRITABLE["boris_project"].write([record])
    (record,) = FORMATS["boris_project"].read("file", text).records
    found = {raw.start: raw.subject for raw in record.instances}
    assert found == {0: "A", 1: "A 2", 2: "", 3: "subject 2", 4: "A 2 2"}


@pytest.mark.parametrize("name", ["boris_aggregated.csv", "boris.boris"])
def test_a_subject_may_be_part_of_the_label(tmp_path, name):
    out = tmp_path / "a.json"
    assert actionspan("dataset", "convert", SAMPLES / name, out, "--subjects") == 0
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
        bout(0, 1, **{name: text}).parsed()


def test_a_subject_in_json_that_is_no_text_is_none():
    row = {"segment": [0, 1], "label": "run", "subject": [1], "modifiers": None}
    text = json.dumps({"database": {"v": {"annotations": [row]}}})
    (record,) = FORMATS["activitynet"].read("a", text).records
    assert record.bouts() == [(0, 1, "run", "", "")]


def test_a_corrected_instance_keeps_who_did_it_and_how():
    known = [bout(at, at + 4, subject="mouse A", modifiers="left") for at in (0, 10, 20, 30)]
    now = [
        bout(0, 4),  # accepted
        bout(11, 14),  # moved
        bout(20, 24, "rear"),  # another action is not done the same way
        bout(30, 34, subject="mouse B", modifiers="right"),
        bout(50, 54),  # added
    ]
    (merged,), _ = merge([record_of(*known)], [record_of(*now)])
    assert [(raw.subject, raw.modifiers) for raw in merged.instances] == [
        *[("mouse A", "left"), ("mouse A", "left"), ("mouse A", "")],
        *[("mouse B", "right"), ("", "")],
    ]


def test_the_annotations_of_a_run_keep_them(tmp_path):
    raw = bout(1, 2, subject="mouse A", modifiers="left")
    record = Record(video_id="a", seconds=9, subset="training", instances=[raw])
    index = index_annotations(Reading(records=[record]), IndexSettings())
    write_annotations(tmp_path / "a.json", index.annotations)
    write_annotations(tmp_path / "b.json", read_annotations(tmp_path / "a.json"))
    (found,) = read_annotation_file(tmp_path / "b.json").records
    assert facts(found) == facts(record)
