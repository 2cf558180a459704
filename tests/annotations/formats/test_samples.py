"""A small file of each form as its tool writes it: what is read, and what is said of the rest."""

import contextlib
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from actionspan.annotations.formats import parsing, registry
from actionspan.annotations.formats.records import Reading, video_id_of
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.formats.times import Frame, VideoEnd, to_seconds
from actionspan.errors import InputError

SAMPLES = Path(__file__).parents[1] / "samples"
PLUGIN = Path(__file__).parents[3] / "examples/plugins/formats"
PLUGGED = ("via2", "elan_table", "audacity")


@pytest.fixture(scope="module", autouse=True)
def _plugged():
    """Read the formats of the plug-in in examples/ too, after ours and before the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PLUGIN)
        theirs = {name: import_module(f"actionspan_formats.{name}") for name in PLUGGED}
        patch.setattr(registry, "FORMATS", registry._OURS | theirs | registry._LAST)
        yield


def sample(name: str) -> Path:
    return next(path for path in (SAMPLES / name, PLUGIN / "samples" / name) if path.exists())


JUMP, CUT, FALL = (1.04, 2.5, "jump"), (1.04, 2.5, "cut, stir"), (61.007, 62, "fall")
GROOM, SNIFF, SIT = (1.04, 2.5, "groom"), (3.2, 3.2, "sniff"), (0.5, 4, "sit")
OF_VIA2 = {"yard": [(0.96, 1.12, "jump"), (1.12, 1.2, "child"), (1.2, 1.28, "jump")]}
OF_VIA3 = {"yard": [(1.04, 2.5, "Jump, high"), FALL]}
BY_FRAMES = [(26 / 25, 30 / 25, "jump"), (2, 54 / 25, "jump"), (60 / 25, 62 / 25, "fall")]
BY_FRAMES += [(4, 104 / 25, "rain"), (120 / 25, 122 / 25, "rain")]
# form, and what is said of each video of 4,000 s at 25 frames a second
EXPECTED: dict[str, Any] = {
    "audacity.txt": ("audacity", {"audacity": [CUT, (3.2, 3.2, "click"), FALL]}),
    "boris_aggregated.csv": (
        "boris",
        {"cage 1": [GROOM, SNIFF, (61.007, 62, "rear")], "cage 2": [(0.5, 4, "groom")]},
    ),
    "boris.boris": (
        "boris_project",
        {
            "cage 1": [SNIFF, GROOM, (2, 9.25, "groom")],
            "cage 1b": [(0.5, 3.5, "groom")],
            "cage 2": [],
        },
    ),
    "boris_old.csv": ("boris", {"cage 1": [GROOM, SNIFF]}),
    "boris_tabular.tsv": ("boris", {"cage 1": [GROOM, SNIFF, (2, 9.25, "groom")]}),
    "chapters.txt": (
        "chapters",
        {"chapters": [(0, 80, "Intro"), (80, 3725, "Jump, high"), (3725, 4000, "Fall")]},
    ),
    "corrections.csv": (
        "corrections",
        {"yard": [JUMP, (60.9, 62, "fall"), (70, 71, "action")], "still": [], "gate": []},
    ),
    "cvat.xml": ("cvat", {"yard": BY_FRAMES}),
    "elan.eaf": ("elan", {"kitchen 1": [(1.54, 3.0, "cut & stir"), (61.507, 62.5, "fall")]}),
    "elan_columns.txt": (
        "elan_table",
        {"elan_columns": [CUT, (1.04, 2.5, "yes"), (61.007, 62, "no")]},
    ),
    "elan_files.txt": ("elan_table", {"kitchen 1": [CUT], "kitchen 2": [(61.007, 62, "wash")]}),
    "elan_rows.txt": ("elan_table", {"kitchen 1": [CUT, FALL]}),
    "events.csv": ("proposals", {"yard": [JUMP], "gate": [(0.5, 4, "=sum")]}),
    "events.json": ("proposals", {"yard": [JUMP, (61.007, 62, "action")], "gate": [SIT]}),
    "label_studio.json": (
        "label_studio",
        {
            "yard_1": [(1, 62 / 25, "jump")],
            "the gate": [(0.5, 4, "speech"), (2, 3, "jump"), (2, 3, "turn")],
            "still": [],
        },
    ),
    "label_studio_min.json": (
        "label_studio",
        {"yard_1": [(1, 62 / 25, "jump"), (60, 62, "fall")], "still": []},
    ),
    "proposals.csv": (
        "proposals",
        {"yard": [(1.04, 2.5, "action"), (61.007, 62, "action")], "gate": [(0.5, 4, "action")]},
    ),
    "table_commas.csv": ("table", {"yard": [JUMP, FALL], "gate": [SIT]}),
    "via2.csv": ("via2", OF_VIA2),
    "via2.json": ("via2", OF_VIA2),
    "via3.csv": ("via3", OF_VIA3),
    "via3.json": ("via3", OF_VIA3 | {"gate": [(0.5, 4, "Default")], "still": []}),
}
# rows that are left out
LEFT_OUT: dict[str, dict[str, str]] = {
    "audacity.txt": {"5": "'start, end, label' between tabs is wanted"},
    "boris.boris": {
        "observations.day 1.events[8]": "not an event: time in seconds, subject, behaviour, …",
        "observations.day 1.events[7]": "'rear' begins and never ends",
        "observations.day 1.events[9]": "'groom' lasts over the end of a media file",
        "observations.day 3": "an observation without a media file in the first player",
    },
    "boris_tabular.tsv": {"7": "a START of 'rear' without a STOP"},
    "corrections.csv": {
        "8": "status 'perhaps'; known are accepted, moved, added, rejected, none",
        "9": "added, but without a start and an end",
    },
    "cvat.xml": {"track 1": "a frame that is not a number"},
    "elan.eaf": {
        "tier cook, annotation a2": "a time slot without a value in milliseconds; align it in ELAN"
    },
    "events.json": {"results.gate[1]": "no segment [start, end]"},
    "label_studio.json": {
        "[0].annotations[1]": "a second annotation of this task; the first that is not cancelled "
        "counts",
        "[0].annotations[0].result[2]": "no start and end: ranges in frames, or seconds",
    },
    "via2.csv": {
        "6": "not a row of filename,file_size,file_attributes,region_count,region_id,"
        "region_shape_attributes,region_attributes"
    },
    "via2.json": {
        "cover.jpg99": "picture 'cover.jpg' is no frame of a video: name it VIDEO_000123.jpg"
    },
    "via3.csv": {
        "14": "not a row of metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,"
        "metadata"
    },
    "via3.json": {"metadata.2_dB3dE6gH": "3 times where a segment has two"},
}


def said(reading, seconds=4000.0, fps=25.0):
    return {
        record.video_id: [raw.parsed(seconds, fps) for raw in record.instances]
        for record in reading.records
    }


def test_every_sample_is_expected():
    names = [path.name for folder in (SAMPLES, PLUGIN / "samples") for path in folder.iterdir()]
    assert sorted(names) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_says_what_its_tool_meant(name):
    (form, videos), left_out = EXPECTED[name], LEFT_OUT.get(name, {})
    reading = read_annotation_file(sample(name))
    assert reading.form == form
    assert said(reading) == {
        video_id: [(pytest.approx(start), pytest.approx(end), label) for start, end, label in found]
        for video_id, found in videos.items()
    }
    assert {bad.row: bad.reason for bad in reading.rejections} == left_out
    assert all(bad.file == str(sample(name)) for bad in reading.rejections)
    if left_out:
        with pytest.raises(InputError, match=re.escape(next(iter(left_out.values()))[:20])):
            read_annotation_file(sample(name), strict=True)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n").encode(),
        lambda text: f"\n\n{text}".encode(),
    ],
    ids=["mark", "utf16", "crlf", "blank"],
)
def test_a_sample_written_otherwise_says_the_same(name, change, tmp_path):
    text = sample(name).read_text(encoding="utf-8")
    if text.startswith("<?xml"):
        text = text[text.index("?>") + 2 :].lstrip()  # nothing may stand before a declaration
    (tmp_path / name).write_bytes(change(text))
    changed = read_annotation_file(tmp_path / name)
    assert changed.form == EXPECTED[name][0]
    assert said(changed) == said(read_annotation_file(sample(name)))


def test_a_folder_of_files_is_read_file_by_file(tmp_path):
    for name in ("elan.eaf", "boris_old.csv", "audacity.txt"):
        (tmp_path / name).write_bytes(sample(name).read_bytes())
    (tmp_path / "notes.pdf").write_bytes(b"\0")
    reading = read_annotation_file(tmp_path)
    assert [record.video_id for record in reading.records] == ["audacity", "cage 1", "kitchen 1"]
    assert {Path(bad.file).name for bad in reading.rejections} == {"elan.eaf", "audacity.txt"}


def test_pictures_far_apart_are_two_instances():
    rows = "".join(
        f'v_{frame:06}.jpg,1,"{{}}",1,0,"{{}}","{{""act"":""run""}}"\n'
        for frame in (0, 1, 2, 500, 501)
    )
    header = sample("via2.csv").read_text().splitlines()[0]
    (record,) = registry.FORMATS["via2"].read("v.csv", f"{header}\n{rows}").records
    assert [(raw.start.number, raw.end.number) for raw in record.instances] == [(0, 3), (500, 502)]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        *[("90", 90), ("1:30", 90), ("01:30.25", 90.25), ("0:01:30", 90)],
        ("100:00:00.5", 360000.5),
        *[(" 0:00 ", 0), ("125:00", 7500), (2, 2), ("1e2", 100), (-0.5, -0.5)],
        *[("0:60", None), ("1:60:00", None), ("1:5", None), ("-1:00", None), ("1:2:3:4", None)],
        *[("", None), ("1:00,5", None), ("nan", None), ("1:٣٠", None), ("9" * 100, None)],
    ],
)
def test_times(given, seconds):
    assert to_seconds(given) == seconds
    assert to_seconds(Frame(50)) is to_seconds(VideoEnd()) is None
    assert (to_seconds(Frame(50), fps=25), to_seconds(VideoEnd(), seconds=9.5)) == (2, 9.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chapters.txt", "end is the end of the video, and its duration is not known here: `act"),
        ("cvat.xml", "start is frame 26, and the frame rate is not known here: `actionspan data"),
    ],
)
def test_a_time_that_needs_the_video_is_a_line(name, message):
    with pytest.raises(ValueError, match=message):
        [record.parsed() for record in read_annotation_file(sample(name)).records]


@pytest.mark.parametrize(
    ("media", "video_id"),
    [
        *[("a b.mp4", "a b"), ("./x/a.MKV", "a"), ("C:\\x\\a.b.avi", "a.b"), ("a.2", "a.2")],
        *[("file:///D:/x/a.mp4", "a"), ("file:///home/x/a%20b.wav", "a%20b"), (".mp4", ".mp4")],
        *[("https://h/x/a%20b.webm?y=1#t", "a b"), ("s3://bucket/a.mov", "a"), ("", "")],
        *[("https://[", "https://["), ("\\\\server\\share\\a.mp4", "a"), ("a.mp4.mp4", "a.mp4")],
    ],
)
def test_the_stem_of_the_media_file_is_the_video(media, video_id):
    assert video_id_of(media) == video_id


# ---- hostile files ----

BOMB = '<!DOCTYPE a [<!ENTITY x "ha">' + "".join(
    f'<!ENTITY x{number} "&x{number - 1 or ""};&x{number - 1 or ""};">' for number in range(1, 40)
)
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("root", ["ANNOTATION_DOCUMENT", "annotations"])
@pytest.mark.parametrize(
    ("before", "inside", "message"),
    [
        (f"{BOMB}]>", "&x39;", r"line 1: a document type \(DOCTYPE\), which may define entities"),
        (OUTSIDE, "&x;", r"line 1: a document type \(DOCTYPE\)"),
        ('<!DOCTYPE a SYSTEM "http://localhost/a.dtd">', "", "a document type"),
        ("", "&x;", "line 1: not XML: undefined entity"),
        ("", "<a>" * 101, "line 1: nested too deeply"),
        ("", "<a></b>", "line 1: not XML: mismatched tag"),
        ("", "\x01", "not XML: not well-formed"),
        ("", b"caf\xe9", "not UTF-8 text; save the file as UTF-8"),
        ('<?xml version="1.0" encoding="no-such"?>', "<a", "not XML"),
    ],
)
def test_xml_that_is_refused(tmp_path, root, before, inside, message):
    path = tmp_path / "a.xml"
    inside = inside if isinstance(inside, bytes) else inside.encode()
    path.write_bytes(f"{before}<{root}>".encode() + inside + f"</{root}>".encode())
    with pytest.raises(InputError, match=rf"^{path}: [^\n]*{message}[^\n]*$"):
        read_annotation_file(path)


def test_a_tier_of_elan_may_divide_another_evenly(tmp_path):
    """Between 1.04 s and 2.5 s, and no further than a slot without a neighbour in time."""
    parts = [("ts1", "n1"), ("n1", "n2"), ("n2", "ts2"), ("n3", "ts5"), ("ts5", "n4"), ("n4", "x")]
    annotations = "".join(
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="p{place}" TIME_SLOT_REF1="{start}" '
        f'TIME_SLOT_REF2="{end}"><ANNOTATION_VALUE>part</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>'
        "</ANNOTATION>"
        for place, (start, end) in enumerate(parts)
    )
    tier = f'<TIER LINGUISTIC_TYPE_REF="parts" PARENT_REF="cook" TIER_ID="x">{annotations}</TIER>'
    slots = "".join(f'<TIME_SLOT TIME_SLOT_ID="n{place}"/>' for place in range(1, 5))
    text = sample("elan.eaf").read_text().replace("</TIME_ORDER>", f"{slots}</TIME_ORDER>")
    text = text.replace("<LINGUISTIC_TYPE ", f"{tier}<LINGUISTIC_TYPE ", 1)
    (tmp_path / "a.eaf").write_text(text)
    read = read_annotation_file(tmp_path / "a.eaf")
    found = [each for each in said(read)["kitchen 1"] if each[2] == "part"]
    edges = [0.5 + each for each in (1.04, 1.04 + 1.46 / 3, 1.04 + 2.92 / 3, 2.5)]
    assert [each[0] for each in found] == pytest.approx(edges[:-1])
    assert [each[1] for each in found] == pytest.approx(edges[1:])
    rejected = {rejection.row for rejection in read.rejections}
    assert {f"tier x, annotation p{place}" for place in (3, 4, 5)} < rejected


def test_xml_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parsing, "LARGEST", 100)
    path = tmp_path / "a.xml"
    path.write_text(f"<annotations>{' ' * 100}</annotations>")
    with pytest.raises(InputError, match="XML of 127 characters; at most 100 are read"):
        read_annotation_file(path)


def test_a_declared_encoding_does_not_change_what_is_decoded(tmp_path):
    text = sample("elan.eaf").read_text().replace("UTF-8", "UTF-16", 1).replace("cut", "café")
    (tmp_path / "a.eaf").write_text(text, encoding="utf-8")
    (first, _) = said(read_annotation_file(tmp_path / "a.eaf"))["kitchen 1"]
    assert first[2] == "café & stir"


NINES = "9" * 1_000_000
JSON_VALUES = ("NaN", "Infinity", "-5", "1e400", NINES, "null", '""', "[]", "true", '"x"')
JSON_PLACES = ("1.04", '"start":26', '"end":62', '"fps":25', '"framesCount":3000', '"z":[0.5,4]')
TEXT_VALUES = ("nan", "inf", "-5", "1e400", NINES, "", "x", "1:99")
TEXT_PLACES = ("1.04", "2.5", "00:00:01.040", '"1040"', '"26"', "1,04", "1:20", "25.0", "step=2")
STRANGE = [
    (name, value)
    for name in EXPECTED
    for value in (JSON_VALUES if name.endswith((".json", ".boris")) else TEXT_VALUES)
]


@pytest.mark.parametrize(("name", "value"), STRANGE, ids=lambda text: text[:9])
def test_a_strange_number_gives_sound_times_or_a_line(tmp_path, name, value):
    text, path = sample(name).read_text(), tmp_path / name
    if name.endswith((".json", ".boris")):
        news = {old: re.sub("[^:]*$", lambda _: value, old, count=1) for old in JSON_PLACES}
    else:
        news = {old: f'"{value}"' if old.startswith('"') else value for old in TEXT_PLACES}
        news["step=2"] = f"step={value}"
    for old, new in news.items():
        if old in text:
            path.write_text(text.replace(old, new))
            _is_sound_or_a_line(path)


def _is_sound_or_a_line(path):
    reading, message = outcome(path)
    assert len(message) < 400
    assert message.startswith(f"{path}: ")
    for bad in reading.rejections:
        assert len(bad.line()) < 400
    for record in reading.records:
        for raw in record.instances:
            with contextlib.suppress(ValueError):
                start, end, label = raw.parsed(record.seconds or 4000, record.fps or 25)
                assert abs(start) + abs(end) < float("inf")
                assert label


def outcome(path, form="auto"):
    try:
        return read_annotation_file(path, form), f"{path}: "
    except InputError as error:
        return Reading(), str(error)


@pytest.mark.parametrize("form", [*registry.FORMATS, *PLUGGED])
def test_each_form_asked_for_by_name_refuses_other_files_in_a_line(form):
    for name in EXPECTED:
        _, message = outcome(sample(name), form)
        assert message.startswith(f"{sample(name)}: ")
