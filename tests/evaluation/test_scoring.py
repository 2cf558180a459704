"""All protocols by the commands: their records, the table of videos, and missing frame rates."""

import json

import numpy as np
import pytest

from actionspan.annotations.tables import write_annotations
from actionspan.evaluation import (
    average_recall_activitynet,
    average_recall_thumos14,
    detection_precision,
)
from actionspan.evaluation import recall as recall_module
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, video_rows
from actionspan.evaluation.files import read_frame_rates, read_ground_truth, read_proposals
from actionspan.proposals.segments import result_rows, write_proposals
from actionspan.storage import scratch as scratch_module
from actionspan.storage.writing import read_json, read_tsv
from worlds.command import actionspan
from worlds.scored import annotated, write_results

AR = [f"AR@{number}" for number in (1, 5, 10, 50, 100)]
THUMOS14_AR = [f"thumos14_AR@{number}" for number in (50, 100, 200, 500)]


def write_set(folder, lengths, seed=0):
    """Write annotations, proposals (lists of these lengths) and videos.tsv.

    The last video has no instance, and there is a foreign one beside.
    """
    rng = np.random.default_rng(seed)
    known, made, rates = [], {}, []
    for number, length in enumerate(lengths):
        video = f"v{number}"
        count = 0 if number == len(lengths) - 1 else 1 + number % 3
        known.append(annotated(video, *np.sort(rng.uniform(0, 20, (count, 2)), axis=1).tolist()))
        segments = np.sort(rng.uniform(0, 20, (length, 2)), axis=1)
        made[video] = result_rows(segments, np.sort(rng.uniform(size=length))[::-1])
        rates.append(f"{video}\t{[24.0, 25.0, 29.97, 30.0][number % 4]}\n")
    made["foreign"] = result_rows([[0, 1]] * 9, [1.0] * 9)
    write_annotations(folder / "annotations.json", known)
    write_proposals(made.items(), folder / "proposals.json")
    (folder / "videos.tsv").write_text("video_id\tfps\n" + "".join(rates))
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path, [130, 90, 100, 0, 240, 60, 100])


def evaluate(folder):
    files = f"--proposals {folder}/proposals.json --annotations {folder}/annotations.json"
    files += f" --videos {folder}/videos.tsv --out {folder}/out.json --out-videos {folder}/out.tsv"
    return actionspan(*f"evaluation evaluate --method mine {files}".split())


def evaluated(folder):
    """Return the record and the rows of the table of videos."""
    assert evaluate(folder) == 0
    return read_json(folder / "out.json"), read_tsv(folder / "out.tsv")


def score(folder, protocol, *more):
    truth, given = folder / "annotations.json", folder / "proposals.json"
    files = ("--ground-truth", truth, "--proposals", given)
    return actionspan("score", "--protocol", protocol, *files, *more)


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def scored(folder):
    """Return what the three functions say of the files."""
    truth = read_ground_truth(folder / "annotations.json")
    given = read_proposals(folder / "proposals.json")
    rates = read_frame_rates(folder / "videos.tsv")
    return (
        average_recall_activitynet(truth, given),
        average_recall_thumos14(truth, given, rates),
        detection_precision(truth, given),
    )


def test_the_record_holds_all_protocols(folder):
    record, _ = evaluated(folder)
    recall, in_frames, precision = scored(folder)
    assert record["AUC"] == recall.auc
    assert record["thumos14"] == {
        "AR@50": in_frames.at(50),
        "AR@100": in_frames.at(100),
        "AR@200": None,  # lists of 124 on average
        "AR@500": None,
        "AR@1000": None,
    }
    assert 0 < record["thumos14"]["AR@50"] < record["thumos14"]["AR@100"]
    assert record["detection"] == precision.scores()
    assert record["detection"]["average_mAP"] == pytest.approx(
        np.mean([record["detection"][f"mAP@{0.5 + 0.05 * step:.2f}"] for step in range(10)])
    )


def test_files_in_place_of_memory_change_no_bit(folder, monkeypatch):
    written = []
    for small in (1 << 30, 0):
        monkeypatch.setattr(scratch_module, "_SMALL", small)
        monkeypatch.setattr(recall_module, "_BLOCK", 1 << 30 if small else 3)
        assert evaluate(folder) == 0
        written.append([(folder / name).read_bytes() for name in ("out.json", "out.tsv")])
    assert written[0] == written[1]


def test_the_worst_video_stands_first_and_ties_by_id(folder):
    recall, in_frames, _ = scored(folder)
    rows = list(video_rows(recall, in_frames))
    keys = [(row[VIDEO_COLUMNS.index("AR@100")], row[0]) for row in rows]
    assert keys == sorted(keys)
    assert len({key for key, _ in keys}) > 1
    truth = {video: [(0, 1)] for video in "cab"}
    alike = average_recall_activitynet(truth, {video: [(0, 1, 1)] * 100 for video in truth})
    assert [row[:3] for row in video_rows(alike, None)] == [[video, 1, 100] for video in "abc"]


def test_score_by_thumos14(folder, capsys):
    assert score(folder, "thumos14", "--videos", folder / "videos.tsv", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    _, in_frames, _ = scored(folder)
    assert printed["protocol"] == "thumos14"
    assert (printed["videos"], printed["instances"]) == (5, 11)
    assert (printed["proposals"], printed["proposals_left_out"]) == (620, 109)
    assert printed["videos_without_proposals"] == 1
    assert printed["AR@100"] == in_frames.at(100)
    assert printed["AN"][-1] == 124
    np.testing.assert_array_equal(printed["recall"]["1.00"], in_frames.recall[10])
    np.testing.assert_allclose(np.mean(list(printed["recall"].values()), axis=0), printed["AR"])
    assert score(folder, "thumos14", "--videos", folder / "videos.tsv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "thumos14, subset validation: 5 videos, 11 instances, 620 proposals"
    assert "1 video without proposals: take no part" in lines
    assert lines[-2].split() == ["AR@50", "AR@100", "AR@200", "AR@500", "AR@1000"]
    assert lines[-1].split()[1:] == [f"{100 * printed['AR@100']:.2f}", "–", "–", "–"]


def test_score_by_thumos14_takes_frame_rates_from_the_ground_truths_table(tmp_path, capsys):
    truth = tmp_path / "truth.csv"
    head = "video-name,t-init,t-end,f-init,f-end,video-duration,frame-rate,video-frames,label-idx"
    truth.write_text(f"{head}\nvideo_test_1,0.0,0.9,0,9,9.0,10.0,90,-1\n")
    write_proposals([("video_test_1", result_rows([[0, 1.9]], [1.0]))], tmp_path / "p.json")
    files = f"--ground-truth {truth} --proposals {tmp_path}/p.json"
    (tmp_path / "videos.tsv").write_text("video_id\tfps\nvideo_test_1\t1000\n")
    # of the table, 10 of 20 frames are shared
    for rates, found in (("", 1), (f"--videos {tmp_path}/videos.tsv", 0)):
        words = f"score --protocol thumos14 --json {files} {rates}"
        assert actionspan(*words.split()) == 0
        assert json.loads(capsys.readouterr().out)["recall"]["0.50"][-1] == found


def test_score_by_detection(folder, capsys):
    assert score(folder, "detection", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["protocol"] == "detection"
    assert (printed["videos"], printed["proposals"], printed["proposals_left_out"]) == (7, 720, 9)
    assert {**printed, **scored(folder)[2].scores()} == printed
    assert score(folder, "detection") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "9 proposals left out: their videos are not in the subset"
    assert lines[-1].split()[-1] == f"{100 * printed['average_mAP']:.2f}"


def test_the_table_of_videos_weighted_by_instances_is_the_record(folder):
    record, rows = evaluated(folder)
    assert list(rows[0]) == list(VIDEO_COLUMNS)
    assert list(VIDEO_COLUMNS) == ["video_id", "instances", "proposals", *AR, "AUC", *THUMOS14_AR]
    assert {row["video_id"] for row in rows} == {f"v{number}" for number in range(6)}
    for key in ("instances", "proposals"):
        assert sum(int(row[key]) for row in rows) == record[key]

    def mean(column):
        taken = [row for row in rows if row[column]]
        weights = [int(row["instances"]) for row in taken]
        return np.average([float(row[column]) for row in taken], weights=weights)

    for column in [*AR, "AUC"]:
        assert mean(column) == pytest.approx(record[column], abs=1e-12), column
    for column in THUMOS14_AR[:2]:
        value = record["thumos14"][column.removeprefix("thumos14_")]
        assert mean(column) == pytest.approx(value, abs=1e-12), column
    assert all(row[column] == "" for row in rows for column in THUMOS14_AR[2:])
    without = next(row for row in rows if row["proposals"] == "0")
    assert [float(without[column]) for column in [*AR, "AUC"]] == [0] * 6
    assert [without[column] for column in THUMOS14_AR] == [""] * 4
    assert all(row["thumos14_AR@50"] for row in rows if row is not without)
    # floats are read back as they were
    for row, made in zip(rows, video_rows(*scored(folder)[:2]), strict=True):
        assert [float(row[name]) for name in [*AR, "AUC"]] == made[3:9]


def test_longer_lists_reach_larger_average_numbers(tmp_path):
    record, rows = evaluated(write_set(tmp_path, [1000, 1000, 1000]))
    values = list(record["thumos14"].values())
    assert None not in values
    assert values == sorted(values)
    assert all(row[column] for row in rows for column in THUMOS14_AR)


@pytest.mark.parametrize("rate", ["0.0", ""])
def test_without_frame_rates_thumos14s_values_are_null_and_the_rest_stands(folder, rate, capsys):
    replace(folder / "videos.tsv", "v4\t24.0", f"v4\t{rate}")
    record, rows = evaluated(folder)
    line = "videos.tsv: video 'v4': its frame rate is not known: no values of THUMOS14's protocol\n"
    assert capsys.readouterr().err.endswith(line)
    assert set(record["thumos14"].values()) == {None}
    assert record["AUC"] > 0
    assert all(row[column] == "" for row in rows for column in THUMOS14_AR)


def test_frame_rates_that_are_missing_are_one_line_where_they_are_needed(folder, refused):
    line = refused(score(folder, "thumos14"))
    assert "annotations.json: no frame rates, which thumos14 needs; give --videos" in line
    videos = folder / "videos.tsv"
    rates = videos.read_text()
    for text, wrong in (
        ("v0\t0.0\nv1\t\n", "no frame rates, which thumos14 needs"),
        ("v0\t25.0\nv1\t\n", "video 'v1': its frame rate is not known"),
    ):
        videos.write_text(f"video_id\tfps\n{text}")
        assert f"videos.tsv: {wrong}" in refused(score(folder, "thumos14", "--videos", videos))
    # no scored video needs the rates of v3 and v6
    kept = [line for line in rates.splitlines(True) if line[:2] not in ("v3", "v6")]
    videos.write_text("".join(kept))
    assert evaluated(folder)[0]["thumos14"]["AR@50"] is not None


@pytest.mark.parametrize("protocol", ["activitynet", "thumos14", "detection"])
def test_bad_files_are_one_line_by_every_protocol(folder, protocol, refused):
    path, more = folder / "proposals.json", ["--videos", folder / "videos.tsv"]
    replace(folder / "annotations.json", '"v0"', '"v_0"')
    replace(path, '"v0"', '"0"')
    replace(path, '"v1"', '"v_v_0"')
    line = refused(score(folder, protocol, *more))
    assert "proposals.json: '0' and 'v_v_0' mean one video" in line
    write_results(path, {"foreign": [(1, 2, 1)]})
    line = refused(score(folder, protocol, *more))
    assert "proposals.json: none of its videos (e.g. 'foreign') is in subset" in line


@pytest.mark.parametrize("twin", ["0", "v_0"])
def test_videos_whose_names_differ_by_v_are_two(folder, twin, capsys):
    """One of them in another subset: its frame rate and its proposals are not the other's."""
    other = "v_0" if twin == "0" else "0"
    for name in ("annotations.json", "proposals.json"):
        replace(folder / name, '"v0"', f'"{other}"')
    replace(folder / "videos.tsv", "v0\t", f"{other}\t")
    alone = evaluated(folder)
    content = read_json(folder / "annotations.json")
    content["database"][twin] = {"subset": "training", "duration": 20.0, "annotations": []}
    (folder / "annotations.json").write_text(json.dumps(content))
    with (folder / "videos.tsv").open("a") as file:
        file.write(f"{twin}\t1.0\n")
    assert evaluated(folder) == alone
    if twin == "v_0":  # without a video of their own, two names mean one
        return
    replace(folder / "videos.tsv", "v_0\t", "v_v_0\t")
    capsys.readouterr()
    assert evaluate(folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "videos.tsv: 'v_v_0' and '0' mean one video; keep one" in line


@pytest.mark.parametrize(
    ("lengths", "line"),
    [
        # of lists of 4, 10 and 10 the mean is 8: at 1 % of full lists, 100 / 8 times as much
        (
            [4, 10, 10, 7],
            "lists of 4 to 10 proposals: at AN = 1 the protocol counts no proposal of 1",
        ),
        ([0, 5, 5, 7], ""),  # a video without proposals is a line of its own, on stdout
        ([5, 5, 5, 7], ""),  # the last has no instance
    ],
)
def test_lists_of_unequal_length_are_warned_of(tmp_path, capsys, lengths, line):
    folder = write_set(tmp_path, lengths)
    assert score(folder, "activitynet") == score(folder, "detection") == 0
    error = capsys.readouterr().err
    assert error.count("\n") == (1 if line else 0)
    assert line in error
