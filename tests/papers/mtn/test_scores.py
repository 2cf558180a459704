"""Reading the scores by video of many methods and seeds."""

import json

import numpy as np
import pytest

from actionspan.errors import InputError
from actionspan.evaluation.evaluate import VIDEO_COLUMNS, evaluate_files
from actionspan.evaluation.settings import EvaluationSettings
from actionspan.storage.writing import write_tsv
from actionspan_papers.estimates import seed_scores
from actionspan_papers.mtn.published import ACTIVITYNET, METRICS, THUMOS14
from actionspan_papers.mtn.table import read_video_scores
from evaluation.scores import COLUMNS, write_scores
from papers.mtn.runs import scores_of


def test_seeds_are_put_in_order_and_videos_too(tmp_path):
    levels = {"mtn-seed10": (0.3, 0.4), "random": (0.9, 0.9), "mtn": (0.1, 0.2)}
    scores = scores_of(tmp_path, {**levels, "mtn-seed2": (0.5, 0.6)})
    assert list(scores) == ["mtn", "random"]
    mtn = scores["mtn"]
    assert (mtn.video_ids, mtn.seeds) == (("a", "b"), (1, 2, 10))
    assert mtn.instances.tolist() == [1, 2]
    assert mtn.proposals.tolist() == [[100, 100]] * 3
    assert mtn.values.shape == (3, 2, len(METRICS))
    np.testing.assert_allclose(mtn.of(["AR@100"])[:, :, 0], [[10, 20], [50, 60], [30, 40]])
    np.testing.assert_allclose(mtn.of(["AUC", "AR@1"])[0], [[9, 2], [18, 4]])
    assert np.isnan(mtn.of(["thumos14_AR@500"])).all()


def test_the_mean_over_videos_is_the_value_of_the_record(tmp_path):
    generator = np.random.default_rng(3)
    database, results, videos = {}, {}, []
    for number in range(8):
        name, starts = f"v{number}", generator.uniform(0, 40, 1 + number % 3).tolist()
        instances = [{"segment": [start, start + 15.0], "label": "a"} for start in starts]
        database[name] = {"subset": "validation", "duration": 60.0, "annotations": instances}
        rows = np.sort(generator.uniform(0, 60, (120 + 20 * number, 2)), axis=1).tolist()
        scores = generator.uniform(size=len(rows)).tolist()
        results[name] = [
            {"segment": row, "score": score} for row, score in zip(rows, scores, strict=True)
        ]
        videos.append((name, "25.0"))
    del results["v3"]  # a miss by one protocol, left out by the other
    annotations, proposals = tmp_path / "annotations.json", tmp_path / "proposals.json"
    annotations.write_text(json.dumps({"database": database}))
    proposals.write_text(json.dumps({"results": results}))
    write_tsv(tmp_path / "videos.tsv", ("video_id", "fps"), videos)
    how = {"settings": EvaluationSettings(resamples=2), "videos": tmp_path / "videos.tsv"}
    record, rows = evaluate_files(annotations, proposals, subset="validation", method="mtn", **how)
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


def table(**changes):
    cells = {**dict.fromkeys(COLUMNS, "0.5"), "video_id": "a", "instances": "2"}
    cells = cells | {"proposals": "100"} | changes
    kept = {key: cell for key, cell in cells.items() if cell is not None}
    return "\t".join(kept) + "\n" + "\t".join(kept.values()) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(proposals=None), "mtn.tsv: no column 'proposals'"),
        (table(proposals="many"), "mtn.tsv: row 2: .*'many'"),
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


@pytest.mark.parametrize(
    ("name", "levels", "instances", "message"),
    [
        ("origin", (0.1, 0.2), (1, 3), "video 'b' is not as in .*mtn.tsv"),
        ("mtn-seed2", (0.1,), None, "video 'b' is not as in .*mtn.tsv"),
        ("y/mtn", (0.1, 0.2), None, r"y/mtn.tsv: mtn is in .*x/mtn.tsv already"),
    ],
)
def test_other_ground_truth_and_a_seed_given_twice_are_refused(
    tmp_path, name, levels, instances, message
):
    one = write_scores(tmp_path / "x/mtn.tsv", (0.1, 0.2))
    other = write_scores(tmp_path / f"{name}.tsv", levels, instances=instances)
    with pytest.raises(InputError, match=message):
        read_video_scores([one, other])
