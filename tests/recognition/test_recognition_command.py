"""`actionspan recognition list`, `clips` and `segments`, as the workflow calls them."""

import pytest

from actionspan.annotations.tables import SHARD_COLUMNS, write_annotations, write_videos
from actionspan.cli import main
from actionspan.dataset.video_facts import probe_video
from actionspan.recognition.clip_store import ClipStore
from actionspan.storage.writing import read_tsv
from video.numbered import encode, read_number
from worlds.scored import annotated

SIZE = ["--height", "64", "--width", "128"]


@pytest.fixture
def folder(tmp_path):
    names = [f"{label}/v_{label}_g0{group}_c01" for label in ("run", "sit") for group in (1, 2)]
    for name in names:
        path = tmp_path / "clips" / f"{name}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        encode(path, 20)
    (tmp_path / "clips" / "sit" / "v_sit_g02_c01.mp4").write_bytes(b"")
    return tmp_path / "clips"


def test_from_a_folder_to_shards(folder, tmp_path, capsys):
    table = tmp_path / "clips.tsv"
    assert main(["recognition", "list", "--clips", str(folder), "--out", str(table)]) == 0
    rows = read_tsv(table)
    assert list(rows[0]) == ["clip_id", "path", "label", "subset"]
    ids = [row["clip_id"] for row in rows]
    assert sorted(row["subset"] for row in rows) == ["training"] * 2 + ["validation"] * 2
    shards = [tmp_path / "0000.h5", tmp_path / "0001.h5"]
    flags = ["--stack", "2", "--bound", "12", *SIZE]
    for out, chosen in zip(shards, (ids[::2], ids[1::2]), strict=True):
        words = ["--clips", str(folder), "--shard-clips", *chosen, "--out", str(out), *flags]
        assert main(["recognition", "clips", *words]) == 0
    assert "rejected sit.v_sit_g02_c01" in capsys.readouterr().err
    store = ClipStore(shards)
    assert [clip.clip_id for clip in store.clips] == ids[:3]
    assert (store.classes, store.bound, store.channels["flow"]) == (["run", "sit"], 12.0, 4)
    assert [read_number(store.read("rgb", 0, k)) for k in range(2)] == [4, 12]
    whole = tmp_path / "whole.h5"
    words = ["--clips", str(folder), "--out", str(whole), *flags, "--processes", "2"]
    assert main(["recognition", "clips", *words]) == 0
    assert ClipStore([whole]).fingerprint == store.fingerprint


def test_from_a_video_to_segments(tmp_path):
    video = encode(tmp_path / "v.mp4", 100)
    write_videos(tmp_path / "shard.txt", [probe_video(video)], SHARD_COLUMNS)
    known = annotated("v", (1.0, 2.0, "run"), subset="training", duration=4.0)
    write_annotations(tmp_path / "annotations.json", [known])
    files = {name: str(tmp_path / f"{name}.h5") for name in ("frames", "flow", "out")}
    words = ["--shard", str(tmp_path / "shard.txt"), "--stack", "2", "--out", files["frames"]]
    assert main(["video", "frames", *words]) == 0
    assert main(["video", "flow", "--frames", files["frames"], "--out", files["flow"]]) == 0
    words = ["--frames", files["frames"], "--flow", files["flow"], "--out", files["out"], *SIZE]
    words += ["--annotations", str(tmp_path / "annotations.json"), "--no-background"]
    assert main(["recognition", "segments", *words]) == 0
    store = ClipStore([tmp_path / "out.h5"])
    assert store.classes == ["run"]
    (clip,) = store.clips
    # centres of snippets of 8 frames within 1 … 2 s at 25 frames a second
    assert [read_number(store.read("rgb", 0, k)) for k in range(clip.positions)] == [28, 36, 44]


def test_a_listed_split(folder, tmp_path):
    (tmp_path / "splits").mkdir()
    lines = "v_run_g01_c01.avi 2\nv_run_g02_c01.avi 1\n"
    (tmp_path / "splits" / "run_test_split2.txt").write_text(lines)
    words = ["--clips", str(folder), "--splits", str(tmp_path / "splits"), "--split", "2"]
    assert main(["recognition", "list", *words, "--out", str(tmp_path / "clips.tsv")]) == 0
    rows = [(row["clip_id"], row["subset"]) for row in read_tsv(tmp_path / "clips.tsv")]
    assert rows == [("run.v_run_g01_c01", "validation"), ("run.v_run_g02_c01", "training")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--clips", "gone"], "gone: not a folder of clips"),
        (["list", "--clips", "gone", "--split", "0"], "--split 0: at least 1"),
        (["clips", "--clips", "l", "--shard-clips", "b"], "--shard-clips b: no such clip in l"),
        (["clips", "--clips", "l", "--processes", "0"], "--processes 0: at least 1"),
        (["segments", *"--frames f --flow g --annotations gone".split()], "gone: cannot be read"),
    ],
)
def test_mistakes_are_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l/run").mkdir(parents=True)
    (tmp_path / "l/run/a.mp4").touch()
    assert main(["recognition", *arguments, "--out", "x"]) == 2
    errors = capsys.readouterr().err
    assert words in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "x").exists()
