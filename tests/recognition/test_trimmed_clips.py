"""Files of trimmed clips become stores: which frames, which flow, and undecodable files."""

import h5py
import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.recognition import trimmed_clips
from actionspan.recognition.clip_lists import ClipSettings, TrimmedClip, list_clips
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.trimmed_clips import store_clips
from actionspan.video.optical_flow import compute_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import snippets
from ended_jobs import parts_of_ended_job
from video.numbered import encode, read_number

# the stored size is the videos' own: pictures are compared without scaling
SMALL = ClipSettings(height=64, width=128, stack=3, jpeg_quality=100)


@pytest.fixture
def clips(tmp_path):
    encode(tmp_path / "a.mp4", 40)
    encode(tmp_path / "b.mp4", 3)
    encode(tmp_path / "c.avi", 30, codec="mpeg4", b_frames=2)
    names = [("run.a", "a.mp4", "run"), ("run.b", "b.mp4", "run"), ("sit.c", "c.avi", "sit")]
    return [TrimmedClip(id_, tmp_path / file, label, "training") for id_, file, label in names]


def test_every_eighth_frame_is_kept_with_the_flow_round_it(clips, tmp_path):
    out, flow = tmp_path / "s.h5", FlowSettings(bound=10.0)
    assert store_clips(clips, out, SMALL, flow) == {}
    store = ClipStore([out])
    assert (store.classes, store.bound, store.channels["flow"]) == (["run", "sit"], 10.0, 6)
    frames = {
        clip.clip_id: [read_number(store.read("rgb", place, k)) for k in range(clip.positions)]
        for place, clip in enumerate(store.clips)
    }
    assert frames == {
        "run.a": [4, 12, 20, 28, 36],
        "run.b": [2],  # shorter than half a snippet: its last frame
        "sit.c": [4, 12, 20, 28],
    }
    with h5py.File(out) as file:
        np.testing.assert_allclose(file["run.a/time"], np.array([4, 12, 20, 28, 36]) / 25)
    kept = FrameSettings(snippet_frames=8, stack=3, short_side=64)
    for k, snippet in enumerate(snippets(clips[0].path, kept)):
        planes, _ = compute_flow(snippet.gray[None], flow)
        difference = store.read("flow", 0, k).transpose(2, 0, 1).astype(int) - planes[0]
        assert np.abs(difference).max() <= 3


def test_undecodable_files_are_rejected_and_the_others_stored(clips, tmp_path, capsys):
    tiny, gone = encode(tmp_path / "tiny.mp4", 9, size=(24, 48)), tmp_path / "gone.mp4"
    bad = [TrimmedClip(f"x.{path.stem}", path, "x", "training") for path in (tiny, gone)]
    errors = store_clips([*bad, *clips[:1]], tmp_path / "s.h5", SMALL, FlowSettings())
    assert errors["x.gone"] == f"{gone}: no such file"
    assert errors["x.tiny"].startswith(f"{tiny}: frames of 48×24 pixels are too")
    assert capsys.readouterr().err.count("rejected x.") == 2
    assert [clip.clip_id for clip in ClipStore([tmp_path / "s.h5"]).clips] == ["run.a"]


def test_a_killed_job_does_not_decode_again_but_a_changed_file_is(clips, tmp_path):
    out = tmp_path / "s.h5"

    def job():
        store_clips(clips, out, SMALL, FlowSettings())

    first = parts_of_ended_job(out, job)
    encode(clips[1].path, 30)  # another file in the place of one that was stored
    second = parts_of_ended_job(out, job)
    assert {name for name in first if first[name] == second[name]} == {"run.a", "sit.c"}
    job()
    assert [clip.positions for clip in ClipStore([out]).clips] == [5, 4, 4]


def without_algorithm(settings: FlowSettings) -> None:
    raise InputError(f"algorithm: {settings.algorithm} is not in this OpenCV")


def test_a_missing_algorithm_is_one_error(clips, tmp_path, monkeypatch):
    monkeypatch.setattr(trimmed_clips, "prepare_flow", without_algorithm)
    with pytest.raises(InputError, match="tvl1 is not in this OpenCV"):
        store_clips(clips, tmp_path / "s.h5", SMALL, FlowSettings(algorithm="tvl1"))


@pytest.mark.full
def test_real_clips_are_stored(shared_data, tmp_path):
    """One clip a class of UCF101, HMDB51 and UCF11: avi, mpg and gif."""
    clips = list_clips(shared_data / "clips" / "ucf_hmdb_clips")
    first = list({clip.label: clip for clip in reversed(clips)}.values())
    settings = ClipSettings(stack=2, snippet_frames=60)
    flow = FlowSettings(preset="ultrafast")
    assert store_clips(first, tmp_path / "s.h5", settings, flow) == {}
    store = ClipStore([tmp_path / "s.h5"])
    assert len(store.classes) == len(store.clips) == 9
    for place, clip in enumerate(store.clips):
        motion = []
        for position in range(clip.positions):
            rgb, planes = (store.read(stream, place, position) for stream in ("rgb", "flow"))
            assert (rgb.shape, planes.shape) == ((256, 340, 3), (256, 340, 4))
            assert rgb.std() > 10  # a picture
            assert planes.min() >= 1
            motion.append(np.abs(planes.astype(int) - 128).max())
        assert max(motion) > 8  # more than JPEG adds
