"""`actionspan dataset probe` and `index`: the tables, and what was left out."""

import json
import shutil

import pytest

from actionspan.annotations.tables import read_annotations, read_videos
from actionspan.storage.writing import read_tsv
from worlds.command import actionspan


@pytest.fixture(scope="module")
def folder(tmp_path_factory, video_file):
    """Two good videos, an empty one, one that is no video, and a second file of one stem."""
    videos = tmp_path_factory.mktemp("data") / "videos"
    videos.mkdir()
    for name in ("good.mp4", "it's a.b.mp4", "good.mov"):
        shutil.copy(video_file, videos / name)
    (videos / "empty.mp4").touch()
    (videos / "text.mp4").write_text("no video")
    return videos


@pytest.fixture(scope="module")
def shard(folder):
    made, files = folder.parent / "0000.txt", sorted(folder.glob("*.mp4"))
    assert actionspan("dataset", "probe", "--videos", *files, "--out", made) == 0
    return made


@pytest.fixture
def index(shard, tmp_path):
    """Join the videos with rows of annotations; return the exit status."""

    def run(rows, *more, shards=shard):
        table = tmp_path / "annotations.csv"
        table.write_text(f"video,start,end,label,subset\n{rows}\n")
        words = ("--shards", shards, "--annotations", table, "--out", tmp_path / "out")
        return actionspan("dataset", "index", *words, *more)

    return run


def test_the_whole_way_with_bad_input(folder, index, tmp_path, capsys):
    rows = "good,0.5,1,run,val\nit's a.b,0,2,run,train\ngood,1,0.5,run,val\nnone,1,2,run,val"
    assert index(rows, "--folder", folder) == 0
    out = tmp_path / "out"
    same = "good.mov has the same name, which is the id of a video; rename one of the two"
    text = "not a video that FFmpeg can read: Invalid data found when processing input"
    table = str(tmp_path / "annotations.csv")
    assert [tuple(row.values()) for row in read_tsv(out / "rejected.tsv")] == [
        (f"{folder}/good.mp4", "", same),
        (f"{folder}/empty.mp4", "", "the file is empty"),
        (f"{folder}/text.mp4", "", text),
        (table, "4", "start 1 is not before end 0.5 (video 'good')"),
        (table, "5", "no video file has the id 'none' (1 instance left out)"),
    ]
    found = [(video.video_id, video.subset) for video in read_videos(out / "videos.tsv")]
    assert found == [("good", "validation"), ("it's a.b", "training")]
    known = read_annotations(out / "annotations.json")
    assert [len(one.instances) for one in known] == [1, 1]
    assert (known[0].subset, known[0].duration_seconds) == ("validation", 2.0)
    errors = capsys.readouterr().err
    assert "dataset: 2 videos (1 training, 1 validation, 0 testing)" in errors
    assert "Traceback" not in errors


def test_fail_shows_every_line_and_skip_a_few_and_where_the_others_are(index, tmp_path, capsys):
    rows = "good,0,1,run,val\n" + "\n".join(f"none{i},1,2,run,val" for i in range(20))
    assert index(rows, "--on-bad-input", "fail") == 2
    errors = capsys.readouterr().err
    assert all(f"no video file has the id 'none{i}'" in errors for i in range(20))
    assert errors.rstrip().endswith("skip them with on_bad_input skip")
    assert "22 rejected (above)" in errors
    assert not (tmp_path / "out/videos.tsv").exists()
    assert index(rows) == 0
    errors = capsys.readouterr().err
    assert errors.count("no video file has the id") == 3
    assert f"rejected 17 more: {tmp_path}/out/rejected.tsv names each with its reason" in errors


def test_fail_in_probe(folder, tmp_path, capsys):
    words = ("--out", tmp_path / "s.txt", "--on-bad-input", "fail")
    files = [folder / "good.mp4", folder / "empty.mp4"]
    assert actionspan("dataset", "probe", "--videos", *files, *words) == 2
    errors = capsys.readouterr().err
    assert f"rejected {folder}/empty.mp4: the file is empty" in errors
    assert "1 rejected (above)" in errors


def test_where_no_video_or_no_annotation_is_left_the_run_stops(folder, index, tmp_path, capsys):
    assert index("none,1,2,run,val") == 2
    assert "no annotation is left for 2 videos; see" in capsys.readouterr().err
    alone = tmp_path / "0000.txt"
    assert actionspan("dataset", "probe", "--videos", folder / "empty.mp4", "--out", alone) == 0
    assert index("empty,1,2,run,val", shards=alone) == 2
    assert "no video is left of 1; see" in capsys.readouterr().err


def test_without_videos_the_annotations_give_the_durations(tmp_path):
    path = tmp_path / "a.json"
    entry = {"subset": "training", "duration": 4.5, "annotations": []}
    path.write_text(json.dumps({"database": {"b": entry, "a": entry}}))
    assert actionspan("dataset", "index", "--annotations", path, "--out", tmp_path) == 0
    rows = read_tsv(tmp_path / "videos.tsv")
    found = [(row["video_id"], row["path"], row["duration_seconds"]) for row in rows]
    assert found == [("a", "", "4.5"), ("b", "", "4.5")]
    assert len(read_videos(tmp_path / "videos.tsv")) == 2


def test_shards_may_come_as_a_list_in_a_file(index, shard, tmp_path):
    table, listing = tmp_path / "out/videos.tsv", tmp_path / "list"
    listing.write_text(f"{shard}\n")
    assert index("good,0,1,run,val") == 0
    first = table.read_bytes()
    assert index("good,0,1,run,val", shards=f"@{listing}") == 0
    assert table.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "videos", "counts"),
    [("fights", "untrimmed", (60, 153)), ("rooms", "videos", (13, 83))],
)
def test_real_sets_have_nothing_to_reject(shared_data, tmp_path, name, videos, counts):
    folder, shard = shared_data / name, tmp_path / "s.txt"
    files = sorted((folder / videos).iterdir())
    assert actionspan("dataset", "probe", "--videos", *files, "--out", shard) == 0
    words = ("--shards", shard, "--annotations", folder / "annotations.json", "--out", tmp_path)
    assert actionspan("dataset", "index", *words, "--on-bad-input", "fail") == 0
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
    words = ("--shards", shard, "--annotations", annotations, "--out", tmp_path)
    assert actionspan("dataset", "index", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"actionspan dataset: {shard}: ")
