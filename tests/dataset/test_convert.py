import argparse
import json

import pytest

from actionspan.dataset.convert import add_arguments, run
from actionspan.dataset.formats.registry import read_annotation_file
from actionspan.errors import InputError
from dataset.conftest import encode_video


def convert(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    run(parser.parse_args([str(word) for word in words]))


def segments(path):
    return {
        record.video_id: [raw.parsed() for raw in record.instances]
        for record in read_annotation_file(path).records
    }


def test_a_table_becomes_activitynets_form_and_bad_rows_are_named(tmp_path, capsys):
    table = tmp_path / "mine.tsv"
    table.write_text("video\tstart\tend\tlabel\tsubset\na\t1\t2\trun\tval\nb\t1 s\t2\trun\ttest\n")
    convert(table, tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["database"] == {
        "a": {"subset": "validation", "annotations": [{"segment": [1, 2], "label": "run"}]},
        "b": {"subset": "testing", "annotations": []},
    }
    printed = capsys.readouterr()
    assert (
        printed.err
        == f"left out {table}: row 3: start '1 s' is not a time: seconds, m:ss or h:mm:ss\n"
    )
    assert printed.out == f"{tmp_path / 'mine.json'}: 2 videos, activitynet\n"


def test_what_the_form_cannot_hold_is_said(tmp_path, capsys):
    table = tmp_path / "mine.csv"
    table.write_text("video,start,end,label,subset,fps\na,1,2,run,val,25\nb,,,,,25\n")
    convert(table, tmp_path / "mine.json", "--to", "anet_anno_action")
    line = f"{tmp_path / 'mine.json'}: videos of which anet_anno_action cannot hold: "
    assert capsys.readouterr().err == f"{line}subset (1), fps (2)\n"
    convert(table, tmp_path / "ours.csv")
    assert capsys.readouterr().err == ""


def test_thumos14s_folder_becomes_a_table(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "Diving_val.txt").write_text("video_validation_1 3.5 4\n")
    convert(tmp_path / "in", tmp_path / "out.csv")
    expected = "video,start,end,label,subset\nvideo_validation_1,3.5,4.0,Diving,training\n"
    assert (tmp_path / "out.csv").read_text() == expected


def test_the_real_thumos14_table_and_back(tmp_path, shared_data, capsys):
    real = shared_data / "thumos14" / "thumos14_test_groundtruth.csv"
    convert(real, tmp_path / "a.csv")
    convert(tmp_path / "a.csv", tmp_path / "b.csv", "--to", "thumos14")
    assert capsys.readouterr().err == ""
    assert segments(tmp_path / "b.csv") == segments(real)


def test_mistakes_are_one_line(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("video,start,end,label,subset\na,1,2,run,dev\n")
    with pytest.raises(InputError, match=r"mine.xml: the suffix names no form; give --to"):
        convert(table, tmp_path / "mine.xml")
    with pytest.raises(InputError, match=r"mine.csv: no video is left"):
        convert(table, tmp_path / "mine.json")
    assert not (tmp_path / "mine.json").exists()


def test_elan_has_a_file_for_each_video(tmp_path, capsys):
    table = tmp_path / "mine.csv"
    table.write_text("video,start,end,label\na,1.0004,2,run\na,1.5,3,sit\nb,0:05,1:00.5,run\n")
    convert(table, tmp_path / "eaf", "--to", "elan")
    assert sorted(path.name for path in (tmp_path / "eaf").iterdir()) == ["a.eaf", "b.eaf"]
    printed = capsys.readouterr()
    assert printed.err.endswith("videos of which elan cannot hold: exact times (1)\n")
    convert(tmp_path / "eaf", tmp_path / "back.csv")
    assert segments(tmp_path / "back.csv") == {
        "a": [(1.0, 2.0, "run"), (1.5, 3.0, "sit")],
        "b": [(5.0, 60.5, "run")],
    }
    tiers = (tmp_path / "eaf" / "a.eaf").read_text()
    assert tiers.count("<TIER ") == 2  # the two overlap
    with pytest.raises(InputError, match="ELAN has a file for each video, and there are 2; name a"):
        convert(table, tmp_path / "all.eaf")
    assert not (tmp_path / "all.eaf").exists()
    table.write_text("video,start,end,label\na,1,2,run\n")
    convert(table, tmp_path / "only.eaf")
    assert segments(tmp_path / "only.eaf") == {"a": [(1, 2, "run")]}


def test_times_that_need_the_video_are_left_out_unless_it_is_given(tmp_path, capsys):
    folder = tmp_path / "videos"
    folder.mkdir()
    encode_video(folder / "walk.mkv")  # 2 s at 10 frames a second
    (tmp_path / "walk.txt").write_text("0:00 Stand\n0:01 Walk\n")
    convert(tmp_path / "walk.txt", tmp_path / "a.csv")
    assert segments(tmp_path / "a.csv") == {"walk": [(0, 1, "Stand")]}
    assert "row 2: end is the end of the video, whose duration is not" in capsys.readouterr().err
    convert(tmp_path / "walk.txt", tmp_path / "b.csv", "--videos", folder)
    assert segments(tmp_path / "b.csv") == {"walk": [(0, 1, "Stand"), (1, 2, "Walk")]}
    assert capsys.readouterr().err == ""
    ranges = {"ranges": [{"start": 6, "end": 15}], "timelinelabels": ["Walk"]}
    results = [{"type": "timelinelabels", "value": ranges}]
    task = {"data": {"video": "/x/walk.mkv"}, "annotations": [{"result": results}]}
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    convert(tmp_path / "tasks.json", tmp_path / "c.csv", "--videos", folder)
    assert segments(tmp_path / "c.csv") == {"walk": [(0.5, 1.5, "Walk")]}
    (folder / "walk.mkv").write_bytes(b"no video")
    convert(tmp_path / "tasks.json", tmp_path / "d.csv", "--videos", folder)
    said = capsys.readouterr().err
    assert f"left out {folder / 'walk.mkv'}: not a video that FFmpeg can read" in said
    assert "start is frame 5, and the frame rate is not known here" in said


def test_label_studios_frames_are_said_to_be_less_exact(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("video,start,end,label,fps\na,1.01,2,run,25\nb,1.0,2,run,25\n")
    convert(tmp_path / "a.csv", tmp_path / "a.json", "--to", "label_studio")
    assert capsys.readouterr().err.endswith("label_studio cannot hold: exact times (1)\n")
    convert(tmp_path / "a.json", tmp_path / "b.csv")
    assert segments(tmp_path / "b.csv") == {"a": [(1.0, 2, "run")], "b": [(1, 2, "run")]}
