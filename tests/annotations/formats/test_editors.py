"""The doors of examples/plugins/editors: written, opened by the tool's library, and read back."""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from actionspan.annotations.formats import registry
from actionspan.annotations.formats.records import RawInstance, Record, drop_unsound
from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.tables import read_annotations
from actionspan.cli import main
from actionspan.dataset import convert
from actionspan.errors import InputError
from actionspan.workflow.dataset import _annotation_files

PLUGIN = Path(__file__).parents[3] / "examples/plugins/editors"
DOORS = {"losslesscut": "losslesscut", "otio": "otio_timeline", "fiftyone": "fiftyone_detections"}
FOLDERS = {"losslesscut": "projects", "otio": "all.otio", "fiftyone": "labels.json"}
CANNOT_HOLD = {
    "losslesscut": {"subset", "seconds", "fps"},
    "otio": {"exact times"},
    "fiftyone": {"subset", "seconds", "fps"},
}


@pytest.fixture(scope="module", autouse=True)
def _plugged():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PLUGIN)
        theirs = {name: import_module(f"actionspan_editors.{each}") for name, each in DOORS.items()}
        forms = registry._OURS | theirs | registry._LAST
        patch.setattr(registry, "FORMATS", forms)
        patch.setattr(convert, "FORMATS", forms)
        patch.setattr(convert, "WRITABLE", registry.WRITABLE | theirs)
        yield


def bout(start, end, label, **more) -> RawInstance:
    return RawInstance(start=start, end=end, label=label, **more)


def some_records() -> list[Record]:
    """Two videos with events, of which two overlap, and one in which nothing happens."""
    jump, cut = bout(1.04, 2.5, "jump", subject="ann"), bout(2.003, 62, 'cut, "stir"')
    sit = bout(0.5, 4, "säge", subject="bob", modifiers="high|left")
    return [
        Record(video_id="yard", subset="training", seconds=100, fps=25, instances=[jump, cut]),
        Record(video_id="gate b", seconds=30, fps=29.97, instances=[sit]),
        Record(video_id="still", seconds=10, fps=25),
    ]


def read_sound(path: Path) -> tuple[list[Record], dict[str, str]]:
    """Return the sound records of a file that is recognised, and the reason of each bad row."""
    reading = read_annotation_file(path)
    drop_unsound(reading)
    return reading.records, {bad.row: bad.reason for bad in reading.rejections}


def run(module: str, *words: object) -> None:
    parser = argparse.ArgumentParser()
    step = import_module(f"actionspan_editors.{module}")
    step.add_arguments(parser)
    step.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize("form", DOORS)
def test_records_are_written_and_read_back(tmp_path, form):
    if form == "otio":
        pytest.importorskip("opentimelineio")
    path, given = tmp_path / FOLDERS[form], some_records()
    written = convert.write_records(path, form, given)
    records, bad = read_sound(path)
    assert not bad
    assert set(convert.lost_facts(given, written)) == CANNOT_HOLD[form]
    assert set(convert.lost_facts(given, records)) == CANNOT_HOLD[form]
    found = {record.video_id: sorted(record.bouts()) for record in records}
    for record in given:
        for expected, back in zip(record.bouts(), found[record.video_id], strict=True):
            near = 1 / record.fps if form == "otio" else 0
            assert back[:2] == pytest.approx(expected[:2], abs=near)
            assert back[2:] == expected[2:]


def test_a_project_as_losslesscut_writes_it(tmp_path):
    pytest.importorskip("json5")
    (tmp_path / "x-proj.llc").write_text(
        "{\n  version: 2,\n  mediaFileName: 'my yard.mkv',\n  cutSegments: [\n"
        "    {start: 1.04, end: 2.5, name: 'it\\'s', tags: {subject: 'ann', colour: 'red'}},\n"
        "    {start: 3, end: 4, name: '', selected: true,},\n"
        "    {start: 5, end: 6, name: 'no', selected: false},\n    {start: 7, name: 'mark'},\n"
        "    {start: 9, end: 8, name: 'reversed'},\n    'none',\n  ],\n}\n"
    )
    (record,), bad = read_sound(tmp_path / "x-proj.llc")
    assert record.video_id == "my yard"
    assert record.bouts() == [(1.04, 2.5, "it's", "ann", ""), (3, 4, "action", "", "")]
    assert record.instances[1].unlabelled
    assert bad == {
        "cutSegments[3]": "a point, which has no length",
        "cutSegments[4]": "start 9 is not before end 8",
        "cutSegments[5]": "not an object with start, end and name",
    }
    first = "{version: 1, cutSegments: [{end: 2, name: 'run'}, {start: 5, name: 'rest'}]}"
    (tmp_path / "yard.llc").write_text(first)
    (record,) = read_annotation_file(tmp_path / "yard.llc").records
    assert [raw.parsed(seconds=9) for raw in record.instances] == [(0, 2, "run"), (5, 9, "rest")]


def test_a_run_takes_a_folder_of_projects_and_timelines(tmp_path):
    projects, mixed = tmp_path / "projects", tmp_path / "mixed"
    convert.write_records(projects, "losslesscut", some_records())
    (projects / ".hidden.llc").write_text("{}")
    (projects / "notes.md").write_text("no annotations")
    files = [str(projects / f"{record.video_id}.llc") for record in some_records()]
    assert _annotation_files(str(projects), "config.yaml") == sorted(files)
    index = ["dataset", "index", "--annotations", str(projects), "--out", str(tmp_path / "out")]
    table = tmp_path / "facts.csv"
    table.write_text("video,duration,fps\nyard,100,25\ngate b,30,29.97\nstill,10,25\n")
    assert main([*index, "--video-info", str(table)]) == 0
    known = read_annotations(tmp_path / "out/annotations.json")
    assert [len(video.instances) for video in known] == [1, 0, 2]
    # .otio has no file for each video, but is read from a folder, too
    mixed.mkdir()
    (mixed / "a.otio").write_text("{}")
    assert _annotation_files(str(mixed), "config.yaml") == [str(mixed / "a.otio")]


def test_json5_reads_the_project_that_is_written(tmp_path):
    json5 = pytest.importorskip("json5")
    convert.write_records(tmp_path / "yard.llc", "losslesscut", some_records()[:1])
    project = json5.loads((tmp_path / "yard.llc").read_text())
    assert (project["version"], project["mediaFileName"]) == (2, "yard.mp4")
    assert project["cutSegments"] == [
        {"start": 1.04, "end": 2.5, "name": "jump", "tags": {"subject": "ann"}},
        {"start": 2.003, "end": 62, "name": 'cut, "stir"'},
    ]
    with pytest.raises(InputError, match="losslesscut has a file for each video, and there are 3"):
        convert.write_records(tmp_path / "all.llc", "losslesscut", some_records())


def test_opentimelineio_opens_the_timeline_and_edl_is_made_of_it(tmp_path):
    otio = pytest.importorskip("opentimelineio")
    path = tmp_path / "yard.otio"
    convert.write_records(path, "otio", some_records()[:1])
    clips = otio.adapters.read_from_file(str(path)).find_clips()
    assert [clip.name for clip in clips] == ["jump", 'cut, "stir"']
    assert {clip.media_reference.target_url for clip in clips} == {"yard.mp4"}
    shown = clips[0].source_range  # the frames 26 to 62, the last of which begins at 2.48 s
    assert (shown.start_time.value, shown.duration.value, shown.duration.rate) == (26, 37, 25)
    pytest.importorskip("otio_cmx3600_adapter")
    program = [sys.executable, "-m", "opentimelineio.console.otioconvert"]
    edl, back = tmp_path / "yard.edl", tmp_path / "back.otio"
    subprocess.run([*program, "-i", path, "-o", edl], check=True)
    assert "00:00:01:01 00:00:02:13 " in edl.read_text()
    subprocess.run([*program, "-i", edl, "-o", back, "-a", "rate=25"], check=True)
    (record,), bad = read_sound(back)
    assert (record.video_id, bad) == ("yard", {})
    assert record.parsed() == [(1.04, 2.52, "jump"), (2, 62, 'cut, "stir"')]


def test_a_timeline_as_editors_make_it(tmp_path):
    otio = pytest.importorskip("opentimelineio")

    def span(start, length, rate=25.0):
        times = (otio.opentime.RationalTime(value, rate) for value in (start, length))
        return otio.opentime.TimeRange(*times)

    def clip(name, shown, url="file:///D:/my%20clips/a%20b.MOV", whole=None, **more):
        media = otio.schema.ExternalReference(url, whole) if url else None
        return otio.schema.Clip(name, media, shown, **more)

    hour = span(90_000, 250)  # media that begins at the time code 01:00:00:00
    timeline = otio.schema.Timeline("cut")
    timeline.tracks.append(video := otio.schema.Track(kind="Video"))
    timeline.tracks.append(sound := otio.schema.Track(kind="Audio"))
    sound.append(clip("sound", span(0, 25)))
    video.append(clip("jump", span(90_026, 36), whole=hour))
    video.append(otio.schema.Gap(source_range=span(0, 10)))
    video.append(clip("", None, whole=hour))
    video.append(off := clip("off", span(0, 25)))
    off.enabled = False
    video.append(clip("no file", span(0, 25), url=""))
    video.append(clip("no rate", span(0, 25, 0)))
    video.append(clip("no range", None))
    video.append(clip("reversed", span(25, -5)))
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(timeline, str(path), "otio_json")
    (record,), bad = read_sound(path)
    assert record.video_id == "a b"
    assert record.parsed() == [(1.04, 2.48, "jump"), (0, 10, "action")]
    assert bad == {
        "clip 3": "a clip without a media file",
        "clip 4": "no source range with a frame rate",
        "clip 5": "no source range with a frame rate",
        "clip 6": "start 1 is not before end 0.8",
    }
    given = Record(video_id="yard", instances=[bout(1, 2, "run")])
    with pytest.raises(
        InputError, match="video 'yard': a timeline needs its frame rate: give --vi"
    ):
        convert.write_records(path, "otio", [given])


def test_labels_as_fiftyone_writes_them(tmp_path):
    found = [
        {"label": 1, "support": [27, 62], "confidence": 0.5, "attributes": {"subject": "ann"}},
        {"label": "fall", "timestamps": ["00:01:01.007", 62]},
        *({"label": "x", "support": each} for each in ([9, 8], [0, 8], ["a", 8], [8])),
        *({"label": "x", "timestamps": [5, 4]}, {"label": 7, "support": [1, 2]}, 3),
    ]
    labels = {"in/yard.mp4": found, "nobody": None, "still": [], "odd": "x"}
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"classes": ["run", "jump"], "labels": labels}))
    reading = read_annotation_file(path)
    assert [record.video_id for record in reading.records] == ["yard", "still"]
    jump, fall, reverse, number = reading.records[0].instances
    assert jump.parsed(fps=25) == (1.04, 2.48, "jump")
    assert (jump.score, jump.subject) == (0.5, "ann")
    assert fall.parsed() == (61.007, 62, "fall")
    with pytest.raises(ValueError, match="start 5 is not before end 4"):
        reverse.checked()
    assert number.parsed(fps=25) == (0, 0.08, "7")  # as FiftyOne takes it
    assert [bad.row for bad in reading.rejections] == [
        *(f"labels.in/yard.mp4[{place}]" for place in (2, 3, 4, 5, 8)),
        "labels.odd",
    ]


@pytest.mark.full
def test_fiftyone_imports_what_is_written(tmp_path):
    importers = pytest.importorskip("fiftyone.utils.data.importers")
    parsers = import_module("fiftyone.utils.data.parsers")
    metadata = import_module("fiftyone.core.metadata")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/yard.mp4").touch()
    convert.write_records(tmp_path / "labels.json", "fiftyone", some_records()[:1])
    importer = importers.FiftyOneTemporalDetectionDatasetImporter(dataset_dir=str(tmp_path))
    importer.setup()
    classes = importer.get_dataset_info()["classes"]
    parser = parsers.FiftyOneTemporalDetectionSampleParser(classes=classes)
    labels = json.loads((tmp_path / "labels.json").read_text())["labels"]
    video = metadata.VideoMetadata(total_frame_count=2500, duration=100, frame_rate=25)
    parser.with_sample(("yard.mp4", labels["yard"]), metadata=video)
    jump, cut = parser.get_label().detections
    assert (jump.label, jump.subject, cut.label) == ("jump", "ann", 'cut, "stir"')
    assert jump.support == pytest.approx([27, 63], abs=1)
    assert len(importer) == 1


@pytest.mark.full
def test_events_become_nwb_files_and_a_table_again(tmp_path, capsys):
    pynwb = pytest.importorskip("pynwb")
    convert.write_records(tmp_path / "mine.csv", "table", some_records())
    run("nwb.write", tmp_path / "mine.csv", tmp_path / "nwb", "--start", "2024-05-31T12:30")
    with pynwb.NWBHDF5IO(str(tmp_path / "nwb/yard.nwb"), "r") as file:
        content = file.read()
        assert content.session_start_time == datetime(2024, 5, 31, 12, 30, tzinfo=UTC)
        table = content.intervals["events"]
        assert list(table["label"][:]) == ["jump", 'cut, "stir"']
        assert not pynwb.validate(io=file)
    run("nwb.read", tmp_path / "nwb", tmp_path / "back.csv")
    records, bad = read_sound(tmp_path / "back.csv")
    assert not bad
    found = {record.video_id: record.bouts() for record in records}
    assert found == {record.video_id: record.bouts() for record in some_records()}
    assert "1970" not in capsys.readouterr().err
    run("nwb.write", tmp_path / "mine.csv", tmp_path / "nwb")
    assert "session start 1970-01-01, for not known: --start DATE" in capsys.readouterr().err
    (tmp_path / "text.nwb").write_text("no HDF5")
    for path, message in (("text", "not an NWB file"), ("none", "not an NWB file: .*No such file")):
        with pytest.raises(InputError, match=f"{path}.nwb: {message}[^\n]*$"):
            run("nwb.read", tmp_path / f"{path}.nwb", tmp_path / "x.csv")
    with pytest.raises(InputError, match="--start May: not a date such as 2024-05-31 or"):
        run("nwb.write", tmp_path / "mine.csv", tmp_path / "nwb", "--start", "May")


OTIO = ("otio", "opentimelineio")
BROKEN = [
    ("losslesscut", "json5", "{version: 1, cutSegments: [", "not JSON5: "),
    ("losslesscut", "json5", "{cutSegments: " + "[" * 5000, "nested too deeply"),
    ("losslesscut", "json", '{"cutSegments": {}}', "no list 'cutSegments' as in a project of Los"),
    ("fiftyone", "json", '{"classes": [], "labels": ', "line 1: not JSON: "),
    ("fiftyone", "json", '{"classes": [], "labels": []}', "no object 'labels' as in FiftyOne's"),
    ("otio", "json", '{"OTIO_SCHEMA": ', "line 1: not JSON: "),
    ("otio", "json", "[" * 100_000, "nested too deeply"),
    (*OTIO, '{"OTIO_SCHEMA": "Timeline.1"}', "not a timeline of OpenTimelineIO: "),
    (*OTIO, '{"OTIO_SCHEMA": "Clip.99"}', "OpenTimelineIO: unsupported schema"),
    (*OTIO, '{"OTIO_SCHEMA": "Gap.1"}', "not a timeline of OpenTimelineIO, but"),
    (*OTIO, "[]", "not a timeline of OpenTimelineIO, but"),
]


@pytest.mark.parametrize(("form", "library", "text", "message"), BROKEN)
def test_a_broken_file_is_one_line(tmp_path, form, library, text, message):
    pytest.importorskip(library)
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"^{path}: [^\n]*{message}[^\n]*$"):
        read_annotation_file(path, form)


def test_a_library_that_is_missing_is_one_line(tmp_path, monkeypatch):
    for name in ("json5", "opentimelineio", "pynwb"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.llc").write_text("{version: 2, cutSegments: []}")
    (tmp_path / "a.csv").write_text("video,start,end,label\na,1,2,run\n")
    (tmp_path / "a.otio").write_text('{"OTIO_SCHEMA": "Timeline.1"}')
    with pytest.raises(InputError, match="^json5 is not installed: pip install json5$"):
        read_annotation_file(tmp_path / "a.llc")
    with pytest.raises(InputError, match="^opentimelineio is not installed: pip install opent"):
        read_annotation_file(tmp_path / "a.otio")
    with pytest.raises(InputError, match="^pynwb is not installed: pip install pynwb$"):
        run("nwb.write", tmp_path / "a.csv", tmp_path / "nwb")
    with pytest.raises(InputError, match="^pynwb is not installed"):
        run("nwb.read", tmp_path / "a.nwb", tmp_path / "b.csv")
