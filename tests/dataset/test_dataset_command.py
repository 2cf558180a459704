import json
import shutil

import pytest

from actionspan.cli import main
from actionspan.dataset.tables import read_annotations, read_videos
from actionspan.storage.writing import read_tsv

CSV = "video,start,end,label,subset\n{}\n"


@pytest.fixture
def folder(tmp_path, video_file):
    """Two good videos, an empty one, one that is no video, and a second file of one stem."""
    videos = tmp_path / "videos"
    videos.mkdir()
    shutil.copy(video_file, videos / "good.mp4")
    shutil.copy(video_file, videos / "it's a.b.mp4")
    shutil.copy(video_file, videos / "good.mov")
    (videos / "empty.mp4").touch()
    (videos / "text.mp4").write_text("no video")
    return videos


def index(folder, annotations, *more):
    """Probe and index a folder; return the exit status and the output folder."""
    out = folder.parent / "out"
    shard = out / "shards" / "0000.txt"
    files = sorted(str(path) for path in folder.glob("*.mp4"))
    assert main(["dataset", "probe", "--videos", *files, "--out", str(shard)]) == 0
    table = folder.parent / "annotations.csv"
    table.write_text(annotations)
    words = ["--shards", str(shard), "--annotations", str(table), "--out", str(out), *more]
    return main(["dataset", "index", *words]), out


def test_the_whole_way_with_bad_input(folder, capsys):
    rows = "good,0.5,1,run,val\nit's a.b,0,2,run,train\ngood,1,0.5,run,val\nnone,1,2,run,val"
    status, out = index(folder, CSV.format(rows), "--folder", str(folder))
    assert status == 0
    table = str(folder.parent / "annotations.csv")
    assert [tuple(row.values()) for row in read_tsv(out / "rejected.tsv")] == [
        (
            f"{folder}/good.mp4",
            "",
            "good.mov has the same name, which is the id of a video; rename one of the two",
        ),
        (f"{folder}/empty.mp4", "", "the file is empty"),
        (
            f"{folder}/text.mp4",
            "",
            "not a video that FFmpeg can read: Invalid data found when processing input",
        ),
        (table, "4", "start 1 is not before end 0.5 (video 'good')"),
        (table, "5", "no video file has the id 'none' (1 instance left out)"),
    ]
    videos = read_videos(out / "videos.tsv")
    assert [(video.video_id, video.subset) for video in videos] == [
        ("good", "validation"),
        ("it's a.b", "training"),
    ]
    known = read_annotations(out / "annotations.json")
    assert [len(one.instances) for one in known] == [1, 1]
    database = json.loads((out / "annotations.json").read_text())["database"]
    assert database["good"] == {
        "subset": "validation",
        "duration": 2.0,
        "annotations": [{"segment": [0.5, 1.0], "label": "run"}],
    }
    errors = capsys.readouterr().err
    assert "dataset: 2 videos (1 training, 1 validation, 0 testing)" in errors
    assert "Traceback" not in errors


def test_fail_shows_every_line_and_stops(folder, capsys):
    rows = "\n".join(f"none{i},1,2,run,val" for i in range(20))
    status, out = index(folder, CSV.format(rows), "--on-bad-input", "fail")
    errors = capsys.readouterr().err
    assert status == 2
    assert all(f"no video file has the id 'none{i}'" in errors for i in range(20))
    assert errors.rstrip().endswith("skip them with on_bad_input skip")
    assert "22 rejected (above)" in errors
    assert not (out / "videos.tsv").exists()


def test_skip_shows_a_few_lines_and_where_the_others_are(folder, capsys):
    rows = "good,0,1,run,val\n" + "\n".join(f"none{i},1,2,run,val" for i in range(20))
    status, out = index(folder, CSV.format(rows))
    errors = capsys.readouterr().err
    assert status == 0
    assert errors.count("no video file has the id") == 3
    assert f"rejected 17 more: {out}/rejected.tsv names each with its reason" in errors


def test_fail_in_probe(folder, capsys):
    words = ["--out", str(folder.parent / "s.txt"), "--on-bad-input", "fail"]
    files = [str(folder / "good.mp4"), str(folder / "empty.mp4")]
    assert main(["dataset", "probe", "--videos", *files, *words]) == 2
    errors = capsys.readouterr().err
    assert f"rejected {folder}/empty.mp4: the file is empty" in errors
    assert "1 rejected (above)" in errors


def test_annotations_of_other_videos_stop_the_run(folder, capsys):
    status, _ = index(folder, CSV.format("none,1,2,run,val"))
    assert status == 2
    assert "no annotation is left for 2 videos; see" in capsys.readouterr().err


def test_all_videos_broken_stop_the_run(tmp_path, capsys):
    folder = tmp_path / "videos"
    folder.mkdir()
    (folder / "a.mp4").touch()
    status, _ = index(folder, CSV.format("a,1,2,run,val"))
    assert status == 2
    assert "no video is left of 1; see" in capsys.readouterr().err


def test_without_videos_the_annotations_give_the_durations(tmp_path):
    path = tmp_path / "a.json"
    entry = {"subset": "training", "duration": 4.5, "annotations": []}
    path.write_text(json.dumps({"database": {"b": entry, "a": entry}}))
    assert main(["dataset", "index", "--annotations", str(path), "--out", str(tmp_path)]) == 0
    rows = read_tsv(tmp_path / "videos.tsv")
    assert [(row["video_id"], row["path"], row["duration_seconds"]) for row in rows] == [
        ("a", "", "4.5"),
        ("b", "", "4.5"),
    ]
    assert len(read_videos(tmp_path / "videos.tsv")) == 2


def test_shards_may_come_as_a_list_in_a_file(folder):
    listing = folder.parent / "list"
    listing.write_text(f"{folder.parent}/out/shards/0000.txt\n")
    status, out = index(folder, CSV.format("good,0,1,run,val"))
    first = (out / "videos.tsv").read_bytes()
    words = ["--annotations", str(folder.parent / "annotations.csv"), "--out", str(out)]
    assert (status, main(["dataset", "index", "--shards", f"@{listing}", *words])) == (0, 0)
    assert (out / "videos.tsv").read_bytes() == first


@pytest.mark.parametrize(
    ("name", "videos", "counts"),
    [("fights", "untrimmed", (60, 153)), ("rooms", "videos", (13, 83))],
)
def test_real_sets_have_nothing_to_reject(shared_data, tmp_path, name, videos, counts):
    folder = shared_data / name
    files = [str(path) for path in sorted((folder / videos).iterdir())]
    shard, annotations = tmp_path / "s.txt", str(folder / "annotations.json")
    assert main(["dataset", "probe", "--videos", *files, "--out", str(shard)]) == 0
    words = ["--shards", str(shard), "--annotations", annotations, "--on-bad-input", "fail"]
    assert main(["dataset", "index", *words, "--out", str(tmp_path)]) == 0
    known = read_annotations(tmp_path / "annotations.json")
    assert (len(known), sum(len(one.instances) for one in known)) == counts
    stated = json.loads((folder / "annotations.json").read_text())["database"]
    for one in known:
        assert one.duration_seconds == pytest.approx(stated[one.video_id]["duration"], abs=0.01)


@pytest.mark.parametrize("content", [b"\xff\xfe\0", b"a\tb\nc\td\n", "café\n".encode("latin-1")])
def test_a_shard_that_is_no_table_is_one_line(tmp_path, capsys, content):
    shard, annotations = tmp_path / "s.txt", tmp_path / "a.csv"
    shard.write_bytes(content)
    annotations.write_text("a,1,2,run\n")
    words = ["--shards", str(shard), "--annotations", str(annotations), "--out", str(tmp_path)]
    assert main(["dataset", "index", *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"actionspan dataset: {shard}: ")
    assert errors.count("\n") == 1
