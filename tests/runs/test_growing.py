"""A data set that changes: only its new and changed videos are decoded, flowed and encoded."""

import shutil

import pytest

from runs.conftest import Project, copy_program
from video.numbered import encode

pytestmark = pytest.mark.workflow

# In the program's copy: who is decoded, and how often flow and encoders are called. A job of the
# function whose name the file `end` holds is ended.
COUNTED = """

def _counted(work=WORK):
    def counted(*words, **named):
        import os, signal
        if os.path.exists("end") and open("end").read() == "WORK":
            os.kill(os.getpid(), signal.SIGTERM)  # as a scheduler does
        with open("WORK.txt", "a") as file:
            file.write(f"{words[0] if 'WORK' == 'read_frames' else ''}\\n")
        return work(*words, **named)
    return counted


WORK = _counted()
"""
PLACES = {
    "read_frames": "video/decode.py",
    "compute_flow": "video/optical_flow.py",
    "TwoStream.batch": "features/extraction.py",
}
CONFIG = {
    "dataset": {"videos": "videos", "annotations": "annotations.csv", "videos_per_shard": 4},
    "features": {"encoders": {"input_size": 32, "device": "cpu"}},
}
TARGET = "results/dataset/losses.tsv"  # needs all shards of features


def counts(project: Project) -> dict[str, list[str]]:
    """Return what was done since it was last asked, by function: the videos, or a blank a call."""
    found = {}
    for name in PLACES:
        path = project.folder / f"{name}.txt"
        found[name] = sorted(path.read_text().splitlines()) if path.exists() else []
        path.unlink(missing_ok=True)
    return found


def done_for(*videos: str) -> dict[str, list[str]]:
    each = [""] * len(videos)
    read = sorted(f"videos/{video}.mp4" for video in videos)
    return {"read_frames": read, "compute_flow": each, "TwoStream.batch": each}


def shards(project: Project) -> dict[str, bytes]:
    paths = sorted((project.folder / "results/features/shards").glob("*.h5"))
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("keep", "ends"),
    [(True, ["read_frames", "TwoStream.batch"]), (False, ["read_frames"])],
    ids=["separate steps", "one pass"],
)
def test_only_new_videos_are_encoded_and_all_bits_are_those_of_a_fresh_run(tmp_path, keep, ends):
    project = copy_program(tmp_path)
    for name, place in PLACES.items():
        source = tmp_path / "src/actionspan" / place
        source.write_text(source.read_text() + COUNTED.replace("WORK", name))
    config = {**CONFIG, "video": {"keep": keep}}

    def run() -> None:
        done = project.snakemake(TARGET, config=config)
        ended = (tmp_path / "end").exists()
        assert (done.returncode != 0) == ended, done.stdout + done.stderr

    videos = tmp_path / "videos"
    videos.mkdir()
    for number in range(10):
        encode(videos / f"b{number}.mp4", 20 + number, options={"preset": "ultrafast"})
    (tmp_path / "annotations.csv").write_text("video,start,end,label\nb0,0,0.5,jump\n")
    later = {name: (videos / name).rename(tmp_path / name) for name in ("b8.mp4", "b9.mp4")}

    run()
    assert counts(project) == done_for(*(f"b{number}" for number in range(8)))
    assert list(shards(project)) == ["0000.h5", "0001.h5"]
    # two come, one goes, one is another: a shard splits
    for name, path in later.items():
        path.rename(videos / name)
    (videos / "b1.mp4").unlink()
    shutil.copy(videos / "b3.mp4", videos / "b2.mp4")
    for name in ends:
        (tmp_path / "end").write_text(name)
        run()
    assert "0002.h5" not in shards(project) or "0001.h5" not in shards(project)
    (tmp_path / "end").unlink()
    run()
    assert counts(project) == done_for("b2", "b8", "b9")
    assert not (tmp_path / "results/features/earlier").exists()
    grown = shards(project)
    assert list(grown) == ["0000.h5", "0001.h5", "0002.h5"]
    assert project.planned(TARGET, config=config) == {}
    # without the files, everything is made from nothing
    shutil.rmtree(tmp_path / "results/features/shards")
    (tmp_path / TARGET).unlink()
    run()
    assert counts(project) == done_for("b0", *(f"b{number}" for number in range(2, 10)))
    assert shards(project) == grown
