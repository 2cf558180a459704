"""Every form alike: what is written is read back, and no broken file is more than bad input."""

import contextlib
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actionspan.annotations.formats.label_studio import USUAL_RATE
from actionspan.annotations.formats.records import SUBSETS, RawInstance, Reading, Record
from actionspan.annotations.formats.registry import (
    FORMAT_NAMES,
    FORMATS,
    WRITABLE,
    read_annotation_file,
    sniffed,
)
from actionspan.annotations.formats.thumos14 import CLASSES, NUMBERS
from actionspan.dataset.convert import facts, lost_facts
from actionspan.dataset.matching import IndexSettings
from actionspan.errors import InputError
from tiers import examples, first_tier

# What each form has no place for. THUMOS14's ids say the subset, so only those of others are lost.
CANNOT_HOLD = {
    "activitynet": {"fps"},
    "via3": {"fps", "frames", "seconds", "subset"},
    "label_studio": set(),
    "boris_project": {"frames", "subset"},
    "anet_anno_action": {"fps", "subset"},
    "elan": {"fps", "frames", "seconds", "subset"},
    "thumos14": {"subset"},
    "boris": {"frames", "subset"},
    "table": set(),
}
ONE_VIDEO = {"elan"}

word = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp", "Zs"), exclude_characters="/\\"), min_size=1
)
words = st.lists(word, min_size=1, max_size=2).map(" ".join)
ids = words.filter(
    lambda text: text not in (".", "..", "database") and not text.startswith("video_")
)
labels = (words | st.sampled_from([*CLASSES, "Ambiguous"])).filter(lambda t: t not in NUMBERS)
seconds = st.floats(0, 1e6, allow_subnormal=False)
instances = st.builds(RawInstance, start=seconds, end=st.integers(0, 10**6), label=labels).map(
    lambda raw: replace(raw, start=min(raw.start, raw.end), end=max(raw.start, raw.end))
)
records = st.lists(
    st.builds(
        Record,
        video_id=ids,
        subset=st.sampled_from(["", *SUBSETS]),
        seconds=st.just(0.0) | st.floats(1e-6, 1e6),
        frames=st.integers(0, 10**9),
        fps=st.just(0.0) | st.floats(1e-3, 1e3),
        instances=st.lists(instances, max_size=4),
    ),
    max_size=4,
    unique_by=lambda record: record.video_id,
)


def said(given_records):
    """Return the facts of each video; a project of BORIS gives subjects to what overlaps."""
    every = {record.video_id: facts(record) for record in given_records}
    for known in every.values():
        known.pop("subjects and modifiers", None)
    return every


def held(record, *forms):
    """Return a record as it comes out of one form after another."""
    empty = {"subset": "", "fps": 0.0, "frames": 0, "seconds": 0.0}
    for form in forms:
        segments = [rounded(form, record, *segment) for segment in record.parsed()]
        record = replace(record, **{name: empty[name] for name in CANNOT_HOLD[form]})
        if form == "label_studio":
            record.fps = record.fps or USUAL_RATE
        record.instances = [
            RawInstance(start=start, end=end, label=label) for start, end, label in segments
        ]
    return record


def rounded(form, record, start, end, label):
    if form == "elan":
        return round(1000 * start) / 1000, round(1000 * end) / 1000, label
    if form == "label_studio":
        fps = record.fps or USUAL_RATE
        near = min(0.002 * fps, 0.25)  # of a frame: times may be rounded
        first = math.floor(start * fps + near)
        last = max(math.ceil(end * fps - near), first + 1) if start < end else first
        return first / fps, last / fps, label
    return start, end, label


def test_the_registry_gives_the_choices_of_the_setting():
    assert list(FORMAT_NAMES) == ["auto", *FORMATS]
    assert FORMAT_NAMES[-1] == "table"  # looks like anything
    assert get_args(get_type_hints(IndexSettings)["format"]) == FORMAT_NAMES
    assert set(WRITABLE) == set(CANNOT_HOLD)


def through(form, given_records, strict=False):
    """Return what is read of records that were written, a file each where a form has it so."""
    files = [[record] for record in given_records] if form in ONE_VIDEO else [given_records]
    found = []
    for part in files:
        text = WRITABLE[form].write(part)
        assert sniffed(text) == form
        reading = FORMATS[form].read("file", text, strict)
        assert reading.rejections == []
        found += reading.records
    return found


NAMES = [*WRITABLE]
PAIRS = list(itertools.product(NAMES, repeat=2))
IN_TURN = zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)  # each form once as either


@pytest.mark.parametrize(("first", "second"), first_tier(PAIRS, *IN_TURN))
@settings(max_examples=30)
@given(given_records=records)
def test_what_is_written_comes_back_over_each_pair_of_forms(first, second, given_records):
    between = through(first, given_records, strict=first != "activitynet")
    expected = [held(record, first) for record in given_records]
    assert said(between) == said(expected)
    lost = {
        name
        for record, after in zip(given_records, expected, strict=True)
        for name, value in facts(record).items()
        if facts(after).get(name) != value
    }
    assert {*lost_facts(given_records, between)} - {"exact times"} <= lost
    assert len(lost_facts(given_records, between)) >= len(lost)
    end = through(second, between)
    assert said(end) == said(held(record, first, second) for record in given_records)
    # and back: what both forms hold does not change any more
    again = through(second, through(first, end))
    assert said(through(second, through(first, again))) == said(again)


def test_thumos14_says_the_subset_by_the_id_and_a_known_class_by_its_number():
    record = Record(
        video_id="video_test_0000004",
        subset="validation",
        seconds=33.5,
        fps=30.0,
        instances=[RawInstance(start=0.2, end=1.1, label="CricketBowling")],
    )
    text = WRITABLE["thumos14"].write([record])
    assert text.splitlines()[1] == "video_test_0000004,0.2,1.1,6,33,33.5,30.0,,5"
    assert said(FORMATS["thumos14"].read("", text).records) == said([record])


def test_thumos14_refuses_a_label_that_is_the_number_of_a_class():
    raw = RawInstance(start=0, end=1, label="7")
    with pytest.raises(InputError, match="video 'a': label '7' would be THUMOS14's class Diving"):
        WRITABLE["thumos14"].write([Record(video_id="a", instances=[raw])])


# ---- mutations ----

ENTRY = {
    "subset": "validation",
    "duration": 9.5,
    "annotations": [{"segment": [1, 2.5], "label": "run"}, {"segment": [3, 4], "label": "sit"}],
}
SAMPLES = [
    json.dumps({"version": "1.3", "database": {"a": ENTRY, "v_b": ENTRY}}),
    json.dumps({"v_a": {"duration_second": 9.5, "duration_frame": 285, "annotations": []}}),
    "video,type,type_idx,start,end,startFrame,endFrame\nvideo_test_1,Diving,7,1,2,3,4\n",
    "video-name,t-init,t-end,video-duration,frame-rate,video-frames,label-idx\na,1,2,9,30,270,7\n",
    'video,start,end,label,subset\na,1,2,"run, fast",val\nb,,,,train\n',
    "video_validation_0000266  72.8 76.4\nvideo_test_1 3 4\n",
]
SAMPLES += [path.read_text() for path in sorted((Path(__file__).parents[1] / "samples").iterdir())]
PIECES = ["<", "<!DOCTYPE a [<!ENTITY x 'y'>]>", "&x;", "1:00", *'{}[]",:\n\t;\r\0é ', "\\ud800"]
PIECES += ["null", "NaN", "1e999", "-1", "true", "9" * 400]
PIECES += ['"subset"', '"database":', '"annotations"']


@st.composite
def mutated_files(draw):
    """Draw a file of some form in which a few stretches are cut, repeated or replaced."""
    content = draw(st.sampled_from(SAMPLES)).encode()
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(start + 20, len(content))))
        piece = draw(st.sampled_from(PIECES).map(str.encode) | st.binary(max_size=4))
        kept = content[start:end] * draw(st.integers(0, 2))
        content = content[:start] + kept + piece + content[end:]
    return content


@examples(800)
@given(
    content=mutated_files(),
    form=st.just("auto") | st.sampled_from(FORMAT_NAMES),
    strict=st.booleans(),
    ambiguous=st.booleans(),
)
def test_a_mutated_file_gives_records_and_rejections_or_bad_input(
    tmp_path_factory, content, form, strict, ambiguous
):
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(content)
    try:
        reading = read_annotation_file(path, form, ambiguous, strict)
    except InputError as error:
        reading, message = Reading(), str(error)
    else:
        message = f"{path}: "
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert not (strict and reading.rejections)
    for bad in reading.rejections:
        assert bad.line().startswith(f"{path}: ")
    for record in reading.records:
        assert strict or record.subset in ("", *SUBSETS)
        assert isinstance(record.frames, int)
        for raw in record.instances:
            with contextlib.suppress(ValueError):
                start, end, label = raw.parsed()
                assert abs(start) + abs(end) < float("inf")
                assert label.isprintable()
