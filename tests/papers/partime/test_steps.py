"""Every step on inputs so small that they take seconds: which rows there are, and what they say."""

import shutil

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import VIDEO_COLUMNS, write_videos
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan_papers.experiments import read_frame, values
from dataset.conftest import encode_video
from papers.steps import cells, run_step, step_rows
from temporal.conftest import write_toy

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
            group["gray"] = np.full((60, 32, 40), 40 + 20 * video, np.uint8)
            for t in range(60):
                place = (t + 7 * video) % 28
                group["gray"][t, 8:20, place : place + 12] = 220
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
    few = ["--frames", frames, "--seeds", 1, "--stages", 2, "--samples", 40]
    few += ["--correlations", 0, 0.99, "--subsampling", 1, 16]
    step_rows(tmp_path, "partime", "gradients", *few, figure=True)
    rows = read_frame(tmp_path / "gradients.tsv")
    assert len(rows) == 4 * (1 + 3 * 2)  # streams, and stages of each way
    assert values(rows, "cosine", stages=1) == pytest.approx(1, abs=1e-3)
    first = {"stages": 2, "stage": 1}
    slow, fast = (
        values(rows, "cosine", stream="random", setting=name, gradients="paper", **first).mean()
        for name in ("correlation 0.99", "correlation 0")
    )
    assert slow > fast + 0.3
    assert (values(rows, "kept_bytes", gradients="inputs", **first) > 0).all()
    text = (tmp_path / "gradients.md").read_text()
    assert text.count("good enough") == text.count("`inputs` costs") == 2
    assert (tmp_path / "gradients.svg").stat().st_size > 1000


def test_flow_is_learned_at_one_set_of_rates_for_every_number_of_stages(tmp_path, frames):
    few = ["--seeds", 2, "--stages", 2, "--pairs", 100, "--choosing-pairs", 50, "--maps", 2]
    few += ["--learning-rates", 0.001, 0.003, "--window-seconds", 1, "--frames", frames]
    step_rows(tmp_path, "partime", "flow", *few, figure=True)
    rows = read_frame(tmp_path / "flow.tsv")
    for stages in (1, 2):
        tried = values(rows, "learning_rate", stages=stages, part="choosing", gradients="paper")
        assert tried.tolist() == [0.001, 0.003]
    assert len(values(rows, "loss", part="late")) == 3 * 2
    assert {"pattern", "pattern of learning"} < set(cells(tmp_path / "flow.md")[0])
    # the rate of a score is the one with the least loss where it was chosen
    for mode in ("paper", "inputs"):
        losses = values(rows, "loss", stages=2, gradients=mode, part="choosing")
        best = [0.001, 0.003][int(losses.argmin())]
        scored = values(rows, "learning_rate", stages=2, gradients=mode, part="late")
        assert scored.tolist() == [best] * 2


def test_classes_are_learned_in_every_way_at_the_rate_that_was_best(tmp_path):
    toy = write_toy(tmp_path / "toy", training=6, validation=3)
    few = ["--features", toy.features, "--annotations", toy.annotations, "--seeds", 2, "--stages"]
    few += [2, "--samples", 50, "--windows", 8, "--hidden", 8, "--learning-rates", 0.001, 0.003]
    step_rows(tmp_path, "partime", "classification", *few, figure=True)
    rows = read_frame(tmp_path / "classification.tsv")
    assert len(rows) == 2 * (1 + 4) * (2 + 2)  # streams, ways, and rates and seeds of each
    assert values(rows, "changed_share", stages=2).tolist() == [2 / 8] * 2 * 4 * 4
    for _, own in rows.groupby(["stream", "stages", "gradients"]):
        tried, scored = (own[own["part"] == part] for part in ("choosing", "scored"))
        best = tried["learning_rate"].iloc[int(tried["accuracy"].argmax())]
        assert scored["learning_rate"].tolist() == [best] * 2
    assert len(cells(tmp_path / "classification.md")) == 2 + 2 * 5


def test_measured_emulated_and_bound_are_three_columns(tmp_path):
    rows = step_rows(tmp_path, "partime", "speedup", "--cores", 1, *SPEED, figure=True)
    assert len(rows) == (2 * 2 + 2) * 2 * 2  # networks and sides, works, numbers of stages
    assert {row["measured"] for row in rows} == {""}  # one core: nothing to measure
    assert all(float(row["bound"]) > 1 and float(row["emulated"]) > 0 for row in rows)
    titles = cells(tmp_path / "speedup.md")[0]
    assert {"measured, threads", "measured, processes", "emulated", "bound"} < set(titles)


def test_bounds_by_counting_are_the_same_each_time(tmp_path):
    found = []
    for _ in range(2):
        rows = step_rows(tmp_path, "partime", "balance", *SPEED, figure=True)
        found.append([(row["bound_by_operations"], row["even_bound"]) for row in rows])
    assert found[0] == found[1]
    assert all(float(best) >= float(even) for best, even in found[0])


def test_messages_and_memory_are_counted(tmp_path):
    rows = step_rows(tmp_path, "partime", "messages", *SPEED)
    # every cut of the plain network sends its maps: 4 × R × R floats
    for row in (row for row in rows if row["network"] == "convolutions"):
        cuts = int(row["stages"]) - 1
        assert int(row["bytes_with_skips"]) == cuts * 4 * 4 * int(row["R"]) ** 2
        assert row["bytes_with_skips"] == row["bytes_without_skips"]
    rows = step_rows(tmp_path, "partime", "memory", *SPEED, figure=True)
    assert [row["kept"] for row in rows] == [row["counted"] for row in rows]
    assert {row["counted"] for row in rows if row["mode"] == "paper"} == {"0"}


def test_recorded_delays_are_the_papers(tmp_path):
    step_rows(tmp_path, "partime", "timeline", *SPEED, figure=True)
    shown = cells(tmp_path / "timeline.md")[2:]
    assert [row[3] for row in shown] == [row[4] for row in shown] == ["2", "0", "6", "4", "2", "0"]


def test_baselines_have_a_row_a_size_of_their_batches(tmp_path):
    rows = step_rows(tmp_path, "partime", "baselines", "--depths", 2, 4, figure=True)
    gpipe = {(row["stages"], row["batch"]): row for row in rows if row["schedule"] == "GPipe"}
    assert list(gpipe) == [("2", "2"), ("2", "8"), ("4", "4"), ("4", "16")]
    assert float(gpipe["4", "16"]["idle"]) == pytest.approx(3 / 19, abs=1e-4)
    partime = [row["other_input"] for row in rows if row["schedule"] == "PARTIME"]
    assert partime == ["2 0", "6 4 2 0"]
    assert (tmp_path / "baselines.svg").stat().st_size > 1000


def test_a_data_set_without_video_files_and_another_table_are_refused(tmp_path):
    columns = "video_id path fps frames duration_seconds width height sha256 subset".split()
    row = ["a", "", "25.0", "100", "4.0", "320", "240", "x", "training"]
    path = tmp_path / "videos.tsv"
    path.write_text("\t".join(columns) + "\n" + "\t".join(row) + "\n")
    with pytest.raises(InputError, match="0 videos with a file"):
        run_step("partime", "frames", "--videos", path, "--out", tmp_path / "f")
    with pytest.raises(InputError, match="no column 'cosine'"):
        read_frame(path, ["path", "cosine"])
