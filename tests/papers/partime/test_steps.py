"""Every step on inputs so small that they take seconds: which rows there are, and what they say."""

import shutil

import h5py
import numpy as np
import pytest

from actionspan.dataset.tables import VIDEO_COLUMNS, write_videos
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv
from actionspan_papers.experiments import read_frame, values
from dataset.conftest import encode_video
from papers.steps import cells, outputs, run_step

SPEED = [
    *("--layers", 8, "--maps", 4, "--sides", 16, 32, "--outputs", 3),
    *("--encoder-side", 64, "--depths", 2, 4, "--pairs", 2, "--measured-seconds", 0.01),
]


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Four videos of a bright square that moves."""
    path = tmp_path_factory.mktemp("frames") / "frames.h5"
    with h5py.File(path, "w") as file:
        for video in range(4):
            group = file.create_group(f"v{video}")
            group.attrs["fps"] = 25.0
            gray = np.full((60, 32, 40), 40 + 20 * video, np.uint8)
            for t in range(60):
                place = (t + 7 * video) % 28
                gray[t, 8:20, place : place + 12] = 220
            group["gray"] = gray
    return path


def test_frames_are_of_the_first_videos_or_of_the_first_whose_files_are_given(tmp_path):
    videos = [probe_video(encode_video(tmp_path / f"{name}.mp4")) for name in "dbca"]
    moved = tmp_path / "moved"
    moved.mkdir()
    write_videos(tmp_path / "videos.tsv", videos, VIDEO_COLUMNS)
    words = ["--videos", tmp_path / "videos.tsv", "--most-videos", 3]

    def kept(*files):
        run_step("partime", "frames", *words, "--out", tmp_path / "frames.h5", "--files", *files)
        with h5py.File(tmp_path / "frames.h5") as file:
            return list(file)

    assert kept() == ["a", "b", "c"]
    files = [shutil.move(tmp_path / f"{name}.mp4", moved) for name in "abcd"]
    assert kept(*files[1:3]) == ["b", "c"]
    with pytest.raises(InputError, match="1 videos with a file"):
        kept(files[0])


def test_gradients_have_a_row_a_stage_and_a_line_for_each_kind_of_stream(tmp_path, frames):
    few = ["--seeds", 1, "--stages", 2, "--samples", 40]
    few += ["--correlations", 0, 0.99, "--subsampling", 1, 16]
    run_step(
        *("partime", "gradients", "--frames", frames, *few),
        *outputs(tmp_path, "gradients", figure=True),
    )
    rows = read_frame(tmp_path / "gradients.tsv")
    assert len(rows) == 4 * (1 + 3 * 2)  # streams, and stages of each way
    alone = values(rows, "cosine", stages=1)
    assert alone == pytest.approx(1, abs=1e-3)
    slow, fast = (
        values(
            rows, "cosine", stream="random", setting=name, stages=2, stage=1, gradients="paper"
        ).mean()
        for name in ("correlation 0.99", "correlation 0")
    )
    assert slow > fast + 0.3
    kept = values(rows, "kept_bytes", gradients="inputs", stage=1, stages=2)
    assert (kept > 0).all()
    text = (tmp_path / "gradients.md").read_text()
    assert text.count("good enough") == 2
    assert text.count("`inputs` costs") == 2
    assert (tmp_path / "gradients.svg").stat().st_size > 1000


def test_flow_is_learned_at_one_set_of_rates_for_every_number_of_stages(tmp_path, frames):
    few = ["--seeds", 2, "--stages", 2, "--pairs", 100, "--choosing-pairs", 50, "--maps", 2]
    few += ["--learning-rates", 0.001, 0.003, "--window-seconds", 1]
    run_step(
        *("partime", "flow", "--frames", frames, *few),
        *outputs(tmp_path, "flow", figure=True),
    )
    rows = read_frame(tmp_path / "flow.tsv")
    for stages in (1, 2):
        tried = values(rows, "learning_rate", stages=stages, part="choosing", gradients="paper")
        assert tried.tolist() == [0.001, 0.003]
    assert len(values(rows, "loss", part="late")) == 3 * 2
    assert {"pattern", "pattern of what is learned"} < set(cells(tmp_path / "flow.md")[0])
    # the rate of a score is the one with the least loss where it was chosen
    for mode in ("paper", "inputs"):
        losses = values(rows, "loss", stages=2, gradients=mode, part="choosing")
        best = [0.001, 0.003][int(losses.argmin())]
        scored = values(rows, "learning_rate", stages=2, gradients=mode, part="late")
        assert scored.tolist() == [best] * 2


def test_measured_emulated_and_bound_are_three_columns(tmp_path):
    run_step(
        *("partime", "speedup", "--cores", 1, *SPEED),
        *outputs(tmp_path, "speedup", figure=True),
    )
    rows = read_tsv(tmp_path / "speedup.tsv")
    assert len(rows) == (2 * 2 + 2) * 2 * 2  # networks and sides, works, numbers of stages
    assert {row["measured"] for row in rows} == {""}  # one core: nothing to measure
    assert all(float(row["bound"]) > 1 for row in rows)
    assert all(float(row["emulated"]) > 0 for row in rows)
    titles = cells(tmp_path / "speedup.md")[0]
    assert {"measured, threads", "measured, processes", "emulated", "bound"} < set(titles)


def test_bounds_by_counting_are_the_same_each_time(tmp_path):
    found = []
    for name in ("a", "b"):
        run_step("partime", "balance", *SPEED, *outputs(tmp_path, name, figure=True))
        rows = read_tsv(tmp_path / f"{name}.tsv")
        found.append([(row["bound_by_operations"], row["even_bound"]) for row in rows])
    assert found[0] == found[1]
    assert all(float(best) >= float(even) for best, even in found[0])


def test_messages_and_memory_are_counted(tmp_path):
    run_step("partime", "messages", *SPEED, *outputs(tmp_path, "messages"))
    rows = read_tsv(tmp_path / "messages.tsv")
    plain = [row for row in rows if row["network"] == "convolutions"]
    # every cut of the plain network sends its maps: 4 × R × R floats
    for row in plain:
        cuts = int(row["stages"]) - 1
        assert int(row["bytes_with_skips"]) == cuts * 4 * 4 * int(row["R"]) ** 2
        assert row["bytes_with_skips"] == row["bytes_without_skips"]
    run_step("partime", "memory", *SPEED, *outputs(tmp_path, "memory", figure=True))
    rows = read_tsv(tmp_path / "memory.tsv")
    assert [row["kept"] for row in rows] == [row["counted"] for row in rows]
    assert {row["counted"] for row in rows if row["mode"] == "paper"} == {"0"}


def test_recorded_delays_are_the_papers(tmp_path):
    run_step("partime", "timeline", *SPEED, *outputs(tmp_path, "timeline", figure=True))
    shown = cells(tmp_path / "timeline.md")[2:]
    assert [row[3] for row in shown] == [row[4] for row in shown] == ["2", "0", "6", "4", "2", "0"]


def test_baselines_have_a_row_a_size_of_their_batches(tmp_path):
    words = ["--depths", 2, 4, *outputs(tmp_path, "baselines", figure=True)]
    run_step("partime", "baselines", *words)
    rows = read_tsv(tmp_path / "baselines.tsv")
    gpipe = {(row["stages"], row["batch"]): row for row in rows if row["schedule"] == "GPipe"}
    assert list(gpipe) == [("2", "2"), ("2", "8"), ("4", "4"), ("4", "16")]
    assert float(gpipe["4", "16"]["idle"]) == pytest.approx(3 / 19, abs=1e-4)
    assert [row["other_input"] for row in rows if row["schedule"] == "PARTIME"] == [
        "2 0",
        "6 4 2 0",
    ]
    assert (tmp_path / "baselines.svg").stat().st_size > 1000


def test_a_data_set_without_video_files_is_one_line(tmp_path):
    (tmp_path / "videos.tsv").write_text(
        "video_id\tpath\tfps\tframes\tduration_seconds\twidth\theight\tsha256\tsubset\n"
        "a\t\t25.0\t100\t4.0\t320\t240\tx\ttraining\n"
    )
    with pytest.raises(InputError, match="0 videos with a file"):
        run_step("partime", "frames", "--videos", tmp_path / "videos.tsv", "--out", tmp_path / "f")


def test_a_table_of_something_else_is_refused(tmp_path):
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match="no column 'cosine'"):
        read_frame(tmp_path / "other.tsv", ["a", "cosine"])
