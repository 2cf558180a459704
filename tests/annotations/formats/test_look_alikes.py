"""Files that look like another form, folders of files, and what tools write now and then."""

import json

import pytest

from actionspan.annotations.formats.records import RawInstance, Record
from actionspan.annotations.formats.registry import FORMATS, read_annotation_file, sniffed
from actionspan.annotations.formats.times import Frame
from actionspan.dataset.merge import merge
from actionspan.errors import InputError


def instances(record: Record) -> list[tuple[float, float, str]]:
    return sorted(record.parsed())


def read(path) -> dict[str, list[tuple[float, float, str]]]:
    return {each.video_id: instances(each) for each in read_annotation_file(path).records}


def text_of(form: str, text: str, name: str = "v.txt") -> list[tuple[float, float, str]]:
    (record,) = FORMATS[form].read(name, text).records
    return instances(record)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("cam1\t0:00:01.5\t0:00:03.0\trun\ncam2\t0:00:02.0\t0:00:04.0\tsit\n", "table"),
        ("cam1\t0:00:01.5\t0:00:03.0\trun\ttraining\n", "table"),
        ("video,start,end,label,status\na,1,2,run,done\n", "table"),
        ("video,start,end,label,status\na,1,2,run,moved\n", "corrections"),
        ("video,start,end,label\n0:00 Intro,1,2,run\n", "table"),
        ("Cut, stir; see below\n0:00 Intro\n1:20 Fall\n", "chapters"),
        ("1:20 Fall\n", "table"),  # YouTube's first chapter is at 0:00
        ('{"data": {"video": "a.mp4"}, "annotations": []}', "label_studio"),  # one task
    ],
)
def test_a_file_is_taken_for_what_it_is(text, form):
    assert sniffed(text) == form


def test_a_table_of_proposals_keeps_its_subset_and_duration():
    header = "video_id,rank,start_seconds,end_seconds,score,label,subset,duration"
    text = f"{header}\na,1,1,2,0.5,run,training,9\n"
    (record,) = FORMATS[sniffed(text)].read("p.csv", text).records
    assert (record.subset, record.seconds) == ("training", 9)


def test_a_text_beside_other_files_does_not_stand_for_them(tmp_path):
    (tmp_path / "a.csv").write_text("video,start,end,label\na,1,2,run\n")
    (tmp_path / "empty.txt").write_text("")
    assert read(tmp_path) == {"a": [(1, 2, "run")]}
    (tmp_path / "README.txt").write_text("Thanks for all the fish\n")
    with pytest.raises(InputError, match=r"README\.txt: row 1: no column video"):
        read(tmp_path)


def test_of_two_files_about_a_video_the_second_is_said_and_left_out(tmp_path):
    (tmp_path / "one.csv").write_text("video,start,end,label\nv,0,1,run\n")
    (tmp_path / "two.csv").write_text("video,start,end,label\nv,5,6,jump\n")
    reading = read_annotation_file(tmp_path)
    assert [instances(record) for record in reading.records] == [[(0, 1, "run")]]
    (bad,) = reading.rejections
    assert bad.file.endswith("two.csv")
    assert "a second time 'v'" in bad.reason
    with pytest.raises(InputError, match="a second time 'v'"):
        read_annotation_file(tmp_path, strict=True)


def test_starts_and_stops_belong_together_by_all_modifiers():
    header = "Observation id,Media file name,Behavior,Behavior type,Time,Modifier #1,Modifier #2\n"
    rows = [("START", 1, "p"), ("START", 2, "q"), ("STOP", 3, "q"), ("STOP", 9, "p")]
    text = header + "".join(f"o,v.mp4,eat,{kind},{time},x,{of}\n" for kind, time, of in rows)
    assert text_of("boris", text) == [(1, 9, "eat"), (2, 3, "eat")]


def test_chapters_with_fractions_and_with_ends():
    record = FORMATS["chapters"].read("v.txt", "0:00 - 0:10 a\n0:30.5 b\n0:40 c\n").records[0]
    record.seconds = 60
    assert instances(record) == [(0, 10, "a"), (30.5, 40, "b"), (40, 60, "c")]


def test_a_file_behind_a_server_is_called_as_it_is():
    video = "http://localhost:8080/data/local-files/?d=a/clip.mp4"
    text = json.dumps([{"id": 1, "data": {"video": video}, "annotations": [{"result": []}]}])
    (record,) = FORMATS["label_studio"].read("l.json", text).records
    assert record.video_id == "clip"


def test_frames_of_a_correction_are_counted_at_its_own_rate():
    known = Record(video_id="v", fps=30, instances=[RawInstance(start=1, end=2, label="run")])
    frames = RawInstance(start=Frame(24), end=Frame(48), label="run")
    (merged,), changes = merge([known], [Record(video_id="v", fps=24, instances=[frames])])
    assert instances(merged) == [(1, 2, "run")]
    assert (changes.kept, merged.fps) == (1, 30)


def test_what_the_page_rounded_has_not_moved():
    exact = RawInstance(start=6.195294851794072, end=8.1, label="run")
    known = Record(video_id="v", subset="", instances=[exact])
    rounded = RawInstance(start=6.195, end=8.1, label="run")
    correction = Record(video_id="v", subset="training", instances=[rounded])
    (merged,), changes = merge([known], [correction])
    assert changes.kept == 1
    assert instances(merged) == [(6.195294851794072, 8.1, "run")]
    assert merged.subset == "training"
