"""Reading the scores by video of many methods and seeds."""

import json
from pathlib import Path

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, evaluate_files
from actionspan.evaluation.records import EvaluationSettings
from actionspan.storage.writing import write_tsv
from actionspan_papers.mtn.published import ACTIVITYNET, THUMOS14
from actionspan_papers.mtn.scores import METRICS, read_video_scores
from actionspan_papers.resampling import seed_scores
from evaluation.scores import COLUMNS, write_scores


def test_seeds_are_put_in_order_and_videos_too(tmp_path):
    paths = [
        write_scores(tmp_path / f"{name}.tsv", levels)
        for name, levels in (
            ("mtn-seed10", (0.3, 0.4)),
            ("random", (0.9, 0.9)),
            ("mtn", (0.1, 0.2)),
            ("mtn-seed2", (0.5, 0.6)),
        )
    ]
    scores = read_video_scores(paths)
    assert list(scores) == ["mtn", "random"]
    mtn = scores["mtn"]
    assert mtn.video_ids == ("a", "b")
    assert mtn.instances.tolist() == [1, 2]
    assert mtn.seeds == (1, 2, 10)
    assert mtn.proposals.tolist() == [[100, 100]] * 3
    assert mtn.values.shape == (3, 2, len(METRICS))
    np.testing.assert_allclose(mtn.of(["AR@100"])[:, :, 0], [[10, 20], [50, 60], [30, 40]])
    np.testing.assert_allclose(mtn.of(["AUC", "AR@1"])[0], [[9, 2], [18, 4]])
    assert np.isnan(mtn.of(["thumos14_AR@500"])).all()


def test_the_mean_over_videos_is_the_value_of_the_record(tmp_path):
    generator = np.random.default_rng(3)
    database, results, videos = {}, {}, []
    for number in range(8):
        starts = generator.uniform(0, 40, 1 + number % 3)
        database[f"v{number}"] = {
            "subset": "validation",
            "duration": 60.0,
            "annotations": [
                {"segment": [start, start + 15.0], "label": "a"} for start in starts.tolist()
            ],
        }
        rows = np.sort(generator.uniform(0, 60, (120 + 20 * number, 2)), axis=1).tolist()
        scores = generator.uniform(size=len(rows)).tolist()
        results[f"v{number}"] = [
            {"segment": row, "score": score} for row, score in zip(rows, scores, strict=True)
        ]
        videos.append((f"v{number}", "25.0"))
    del results["v3"]  # a miss by one protocol, left out by the other
    (tmp_path / "annotations.json").write_text(json.dumps({"database": database}))
    (tmp_path / "proposals.json").write_text(json.dumps({"results": results}))
    write_tsv(tmp_path / "videos.tsv", ("video_id", "fps"), videos)
    record, rows = evaluate_files(
        tmp_path / "annotations.json",
        tmp_path / "proposals.json",
        subset="validation",
        method="mtn",
        settings=EvaluationSettings(resamples=2),
        videos=tmp_path / "videos.tsv",
    )
    write_tsv(tmp_path / "mtn.tsv", VIDEO_COLUMNS, rows)
    scores = read_video_scores([tmp_path / "mtn.tsv"])["mtn"]
    means = dict(zip(METRICS, seed_scores(scores.values, scores.instances)[0], strict=True))
    for metric in ACTIVITYNET:
        scale = 1 if metric == "AUC" else 100
        assert means[metric] == pytest.approx(scale * record[metric], abs=1e-9)
    known = {metric for metric in THUMOS14 if not np.isnan(means[metric])}
    assert known == {"thumos14_AR@50", "thumos14_AR@100"}
    for metric in known:
        expected = record["thumos14"][metric.removeprefix("thumos14_")]
        assert means[metric] == pytest.approx(100 * expected, abs=1e-9)
    assert record["thumos14"]["AR@200"] is None


def test_a_path_without_a_name_is_refused():
    with pytest.raises(InputError, match=r"^\.: its path names no method; the form is results/"):
        read_video_scores([Path()])


def table(**changes):
    cells = {**dict.fromkeys(COLUMNS, "0.5"), "video_id": "a", "instances": "2"}
    cells = cells | {"proposals": "100"} | changes
    kept = {key: cell for key, cell in cells.items() if cell is not None}
    return "\t".join(kept) + "\n" + "\t".join(kept.values()) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(AUC=None), "mtn.tsv: no column 'AUC'"),
        (table(proposals=None), "mtn.tsv: no column 'proposals'"),
        (table(proposals="many"), "mtn.tsv: row 2: .*'many'"),
        (table(instances="two"), "mtn.tsv: row 2: .*'two'"),
        (table(instances="0"), "mtn.tsv: row 2: 0 instances"),
        (table(AUC=""), "mtn.tsv: row 2: could not convert"),
        (table(AUC="nan"), "mtn.tsv: row 2: AUC is nan"),
        (table() + "\t".join(["a"] + ["1"] * 12), "mtn.tsv: row 3: video 'a' a second time"),
        ("\t".join(COLUMNS), "mtn.tsv: no video"),
    ],
)
def test_a_broken_table_is_named(tmp_path, text, message):
    path = tmp_path / "mtn.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_video_scores([path])


def test_tables_of_other_ground_truth_are_refused(tmp_path):
    one = write_scores(tmp_path / "mtn.tsv", (0.1, 0.2))
    for path in (
        write_scores(tmp_path / "origin.tsv", (0.1, 0.2), instances=(1, 3)),
        write_scores(tmp_path / "mtn-seed2.tsv", (0.1,)),
    ):
        with pytest.raises(InputError, match="video 'b' is not as in .*mtn.tsv"):
            read_video_scores([one, path])


def test_a_seed_given_twice_is_refused(tmp_path):
    paths = [write_scores(tmp_path / folder / "mtn.tsv", (0.1,)) for folder in ("x", "y")]
    with pytest.raises(InputError, match=r"y/mtn.tsv: mtn is in .*x/mtn.tsv already"):
        read_video_scores(paths)
