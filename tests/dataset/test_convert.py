"""`actionspan dataset convert`: what is written, and a line for what is not."""

import argparse
import csv
import json
from xml.etree import ElementTree

import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.dataset.convert import add_arguments, run
from actionspan.dataset.matching import IndexSettings, index_videos, read_annotations
from actionspan.errors import InputError
from dataset.conftest import encode_video
from worlds.sounds import add_tone
from worlds.videos import video_of

HEADER = "video,start,end,label"


def convert(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def table(tmp_path):
    """Write a table of rows; return its path."""

    def write(*rows, header=HEADER, name="mine.csv"):
        (tmp_path / name).write_text("\n".join((header, *rows)) + "\n")
        return tmp_path / name

    return write


@pytest.fixture
def videos(tmp_path):
    (tmp_path / "videos").mkdir()
    return tmp_path / "videos"


def segments(path):
    return {record.video_id: record.parsed() for record in read_annotation_file(path).records}


def test_a_table_becomes_activitynets_form_and_bad_rows_are_named(tmp_path, capsys):
    table = tmp_path / "mine.tsv"
    table.write_text("video\tstart\tend\tlabel\tsubset\na\t1\t2\trun\tval\nb\t1 s\t2\trun\ttest\n")
    convert(table, tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["database"] == {
        "a": {"subset": "validation", "annotations": [{"segment": [1, 2], "label": "run"}]}
    }
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        f"left out {table}: row 3: start '1 s' is not a time: seconds, m:ss or h:mm:ss",
        f"left out {table}: row 3: no row of video 'b' is left: what happens in it is unknown",
    ]
    assert printed.out == f"{tmp_path / 'mine.json'}: 1 video, activitynet\n"


def test_what_the_form_cannot_hold_is_said(tmp_path, table, capsys):
    mine = table("a,1,2,run,val,25", "b,,,,,25", header=f"{HEADER},subset,fps")
    convert(mine, tmp_path / "mine.json", "--to", "anet_anno_action")
    line = f"{tmp_path / 'mine.json'}: videos of which anet_anno_action cannot hold: "
    assert capsys.readouterr().err == f"{line}subset (1), frame rate (2)\n"
    convert(mine, tmp_path / "ours.csv")
    assert capsys.readouterr().err == ""
    # a lost duration does not read as lost times
    mine = table("a,1,2,run,10,250,25", header=f"{HEADER},duration,frames,fps")
    convert(mine, tmp_path / "a.eaf")
    what = "duration of the video (1), number of frames (1), frame rate (1)"
    line = f"{tmp_path / 'a.eaf'}: videos of which elan cannot hold: {what}\n"
    assert capsys.readouterr().err == line


def test_mistakes_are_one_line(tmp_path, table):
    mine = table("a,1,2,run,dev", header=f"{HEADER},subset")
    with pytest.raises(InputError, match=r"mine.xml: the suffix names no format; give --to"):
        convert(mine, tmp_path / "mine.xml")
    with pytest.raises(InputError, match=r"mine.csv: no video is left"):
        convert(mine, tmp_path / "mine.json")
    assert not (tmp_path / "mine.json").exists()


def test_elan_has_a_file_for_each_video(tmp_path, table, capsys):
    mine, folder = table("a,1.0004,2,run", "a,1.5,3,sit", "b,0:05,1:00.5,run"), tmp_path / "eaf"
    convert(mine, folder, "--to", "elan")
    assert sorted(path.name for path in folder.iterdir()) == ["a.eaf", "b.eaf"]
    said = capsys.readouterr().err
    assert said.endswith("videos of which elan cannot hold: exact times (1)\n")
    convert(folder, tmp_path / "back.csv")
    assert segments(tmp_path / "back.csv") == {
        "a": [(1.0, 2.0, "run"), (1.5, 3.0, "sit")],
        "b": [(5.0, 60.5, "run")],
    }
    assert (folder / "a.eaf").read_text().count("<TIER ") == 2  # the two overlap
    with pytest.raises(InputError, match="elan has a file for each video, and there are 2; name a"):
        convert(mine, tmp_path / "all.eaf")
    assert not (tmp_path / "all.eaf").exists()
    convert(table("a,1,2,run"), tmp_path / "only.eaf")
    assert segments(tmp_path / "only.eaf") == {"a": [(1, 2, "run")]}


def test_times_that_need_the_video_are_left_out_unless_it_is_given(tmp_path, videos, capsys):
    encode_video(videos / "walk.mkv")  # 2 s at 10 frames a second
    (tmp_path / "walk.txt").write_text("0:00 Stand\n0:01 Walk\n")
    convert(tmp_path / "walk.txt", tmp_path / "a.csv")
    assert segments(tmp_path / "a.csv") == {"walk": [(0, 1, "Stand")]}
    assert "row 2: end is the end of the video, and its duration is not" in capsys.readouterr().err
    convert(tmp_path / "walk.txt", tmp_path / "b.csv", "--videos", videos)
    assert segments(tmp_path / "b.csv") == {"walk": [(0, 1, "Stand"), (1, 2, "Walk")]}
    assert capsys.readouterr().err == ""
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([task("/x/walk.mkv", {"start": 6, "end": 15})]))
    convert(tasks, tmp_path / "c.csv", "--videos", videos)
    assert segments(tmp_path / "c.csv") == {"walk": [(0.5, 1.5, "run")]}
    (videos / "walk.mkv").write_bytes(b"no video")
    with pytest.raises(InputError, match="no video is left"):
        convert(tasks, tmp_path / "d.csv", "--videos", videos)
    said = capsys.readouterr().err
    assert f"left out {videos / 'walk.mkv'}: not a video that FFmpeg can read" in said
    assert "start is frame 5, and the frame rate is not known here" in said


def task(video, ends, **data):
    regions = [{"value": {"ranges": [ends], "timelinelabels": ["run"]}}]
    return {"data": {"video": video, **data}, "annotations": [{"result": regions}]}


def test_tools_find_the_files_of_the_videos(tmp_path, videos, table):
    """What ELAN, BORIS, VIA and Label Studio look for, by what their own code reads.

    BORIS 8.27 takes length, rate and sound of each file from media_info, and keys of behaviours;
    the converter of label-studio-sdk 2.1 wants ids.
    """
    encode_video(videos / "mute.avi", codec="mpeg4")
    add_tone(encode_video(videos / "loud.mkv"), (0.5,))
    mine = table("mute,0.5,1,run", "loud,0.5,1,sit", "loud,1,2,run")
    forms = ("elan", "boris_project", "boris", "via3", "label_studio")
    made = {form: tmp_path / f"out.{form}" for form in forms}
    for form, path in made.items():
        convert(mine, path, "--to", form, "--videos", videos)
    for name in ("mute.avi", "loud.mkv"):
        document = ElementTree.parse(made["elan"] / f"{name[:-4]}.eaf")
        (media,) = document.iter("MEDIA_DESCRIPTOR")
        assert (media.get("RELATIVE_MEDIA_URL"), media.get("MIME_TYPE")) == (f"./{name}", "video/*")
    project = json.loads(made["boris_project"].read_text())
    files = {name: each["file"]["1"] for name, each in project["observations"].items()}
    assert files == {"mute": ["mute.avi"], "loud": ["loud.mkv"]}
    info = {name: each["media_info"] for name, each in project["observations"].items()}
    assert info["mute"]["hasAudio"] == {"mute.avi": False}
    assert info["loud"]["hasAudio"] == {"loud.mkv": True}
    assert info["mute"]["length"] == {"mute.avi": 2.0}
    assert [each["key"] for each in project["behaviors_conf"].values()] == ["a", "b"]
    rows = list(csv.DictReader(made["boris"].open(newline="")))
    assert {row["Media file name"] for row in rows} == {"mute.avi", "loud.mkv"}
    via = json.loads(made["via3"].read_text())
    assert [each["src"] for each in via["file"].values()] == ["mute.avi", "loud.mkv"]
    tasks = json.loads(made["label_studio"].read_text())
    assert [(each["id"], each["data"]["video"]) for each in tasks] == [
        (1, "/data/local-files/?d=mute.avi"),
        (2, "/data/local-files/?d=loud.mkv"),
    ]
    assert [one["id"] for each in tasks for one in each["annotations"]] == [1, 2]


BOUT = [[1.0, "", "run", "", ""], [2.0, "", "run", "", ""]]
RUN = {"segment": [1, 2], "label": "run"}
LOST = {  # the only row of video a is lost; of video b one is not
    "a.csv": f'{HEADER},subset\na,"1,5","2,5",run,training\nb,1,2,run,training\n',
    "latin.csv": f"{HEADER}\na,1,2,caf\udce9\nb,1,2,run\n",
    "cells.csv": f"{HEADER}\na,,,\na,1,2,run,away,now\nb,1,2,run\n",
    "subsets.csv": f"{HEADER},subset\na,,,,train\na,1,2,run,val\nb,1,2,run,train\n",
    "reversed.csv": f"{HEADER}\na,2,1,run\nb,1,2,run\nb,2,1,run\n",
    "corrections.csv": f"{HEADER},status\na,,,,none\na,1,,run,moved\nb,1,2,run,added\n",
    "a.json": {"database": {"a": {"annotations": [{"label": "run"}]}, "b": {"annotations": [RUN]}}},
    "via.json": {
        "metadata": {
            "1": {"vid": "1", "z": [1, 2, 3], "xy": [], "av": {"1": "run"}},
            "2": {"vid": "2", "z": [1, 2], "xy": [], "av": {"1": "run"}},
        },
        "view": {"1": {"fid_list": ["1"]}, "2": {"fid_list": ["2"]}},
        "file": {"1": {"fname": "a.mp4"}, "2": {"fname": "b.mp4"}},
        "attribute": {},
    },
    "tasks.json": [
        task("a.mp4", {"start": "x"}, fps=10),
        task("b.mp4", {"start": 11, "end": 20}, fps=10),
    ],
    "mine.boris": {
        "behaviors_conf": {"0": {"code": "run", "type": "State event"}},
        "observations": {
            "a": {"file": {"1": ["a.mp4"]}, "events": BOUT[:1]},
            "b": {"file": {"1": ["b.mp4"]}, "events": BOUT},
        },
    },
}


@pytest.fixture(params=LOST)
def lost(request, tmp_path):
    content, path = LOST[request.param], tmp_path / request.param
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize("to", ["out.json", "out.csv"])
def test_a_video_that_has_lost_all_its_rows_is_not_one_where_nothing_happens(
    lost, tmp_path, capsys, to
):
    convert(lost, tmp_path / to)
    assert segments(tmp_path / to) == {"b": [(1, 2, "run")]}
    said = capsys.readouterr().err
    assert "no row of video 'a' is left: what happens in it is unknown\n" in said
    assert "'b'" not in said


def test_a_run_learns_nothing_from_such_a_video(lost):
    probed, settings = [video_of("a", fps=10.0), video_of("b", fps=10.0)], IndexSettings()
    index = index_videos(probed, read_annotations([lost], None, settings), settings)
    assert index.videos[0].subset == "testing" != index.videos[1].subset
    reasons = [bad.reason for bad in index.rejections]
    assert any("no row of video 'a' is left; nothing learns" in reason for reason in reasons)


def test_an_empty_tier_is_no_video_where_nothing_happens(tmp_path, capsys):
    annotation = (
        "<ANNOTATION_DOCUMENT><HEADER TIME_UNITS='milliseconds'/><TIME_ORDER>"
        "<TIME_SLOT TIME_SLOT_ID='1' TIME_VALUE='{}'/><TIME_SLOT TIME_SLOT_ID='2' {}/>"
        "</TIME_ORDER><TIER TIER_ID='t'><ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID='a1' "
        "TIME_SLOT_REF1='1' TIME_SLOT_REF2='2'><ANNOTATION_VALUE>x</ANNOTATION_VALUE>"
        "</ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"
    )
    for start, end in ((1000, ""), (2000, "TIME_VALUE='1000'")):
        (tmp_path / "a.eaf").write_text(annotation.format(start, end))
        with pytest.raises(InputError, match="no video is left"):
            convert(tmp_path / "a.eaf", tmp_path / "out.csv")
    assert "start 2 is not before end 1" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("to", ["elan", "label_studio", "table"])
def test_wrong_times_reach_no_tool(tmp_path, videos, table, capsys, to):
    encode_video(videos / "a.mkv", times=range(66))  # 6.6 s at 10 frames a second
    mine = table("a,-1,2,run", "a,5.1,2.5,run", "a,,2,run", "a,1,99,run", "a,1,2,run")
    for words, known in (((), [(1, 99, "run")]), (("--videos", videos), [])):
        convert(mine, tmp_path / "out", "--to", to, *words)
        assert sorted(segments(tmp_path / "out")["a"]) == [(1, 2, "run"), *known]
        said = [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()]
        assert said[:3] == [
            "row 2: start -1 is before the video, which begins at 0",
            "row 3: start 5.1 is not before end 2.5",
            "row 4: start '' is not a time: seconds, m:ss or h:mm:ss",
        ]
        outside = "row 5: segment 1…99 s is outside the video, 0…6.6 s"
        assert (outside in said) == (not known)


def test_a_video_that_is_not_in_the_folder_is_said(tmp_path, videos, table, capsys):
    encode_video(videos / "a.mkv")
    mine = table("mkv_a,1,2,run", "a,1,2,run")
    convert(mine, tmp_path / "out.csv", "--videos", videos)
    line = f"{mine}: row 2: no video of {videos} has the id 'mkv_a': not completed\n"
    assert capsys.readouterr().err == line
    rows = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert rows == ["mkv_a,1.0,2.0,run,,,", "a,1.0,2.0,run,2.0,20,10.0"]


def test_keys_belong_to_boris_alone(tmp_path, table):
    (tmp_path / "keys.json").write_text('[{"key": "gg", "label": "groom"}]')
    words = ("--keys", str(tmp_path / "keys.json"))
    with pytest.raises(InputError, match=r"keys\.json: only boris_project has keys of labels"):
        convert(table("a,1,2,run"), tmp_path / "mine.json", *words)
    with pytest.raises(InputError, match=r"keys\.json: key no\. 1: 'gg' is not one letter or"):
        convert(table("a,1,2,run"), tmp_path / "mine.boris", *words)
