"""The bootstrap interval against resampling done the long way."""

import numpy as np
import pytest

from actionspan.evaluation import average_recall_activitynet
from actionspan.evaluation.records import EvaluationSettings, recall_intervals

DEFAULT = EvaluationSettings()


def random_problem(videos, proposals=100, seed=0):
    generator = np.random.default_rng(seed)
    truth, made = {}, {}
    for video in range(videos):
        truth[f"{video}"] = np.sort(generator.uniform(0, 30, (1 + video % 3, 2)), axis=1)
        rows = np.sort(generator.uniform(0, 30, (proposals, 2)), axis=1)
        made[f"{video}"] = np.column_stack([rows, generator.uniform(size=proposals)])
    return truth, made


def test_equals_scoring_each_resample_by_the_whole_protocol():
    truth, proposals = random_problem(12)
    generator = np.random.default_rng(5)
    ids = list(truth)
    scored = []
    for _ in range(25):
        drawn = [ids[index] for index in generator.integers(len(ids), size=len(ids))]
        scored.append(
            average_recall_activitynet(
                {f"{place}/{video}": truth[video] for place, video in enumerate(drawn)},
                {f"{place}/{video}": proposals[video] for place, video in enumerate(drawn)},
            )
        )
    result = average_recall_activitynet(truth, proposals)
    intervals = recall_intervals(result, EvaluationSettings(resamples=25, confidence=0.8, seed=5))
    for interval, values in (
        (intervals.auc, [each.auc for each in scored]),
        (intervals.average_recall, [each.average_recall for each in scored]),
        (intervals.recall, [each.recall[:, -1] for each in scored]),
    ):
        expected = np.quantile(values, [0.1, 0.9], axis=0)
        np.testing.assert_allclose(interval, expected, rtol=0, atol=1e-9)


def test_holds_the_value_shrinks_with_more_videos_and_repeats_with_its_seed():
    few = average_recall_activitynet(*random_problem(20))
    many = average_recall_activitynet(*random_problem(320))
    widths = []
    for result in (few, many):
        low, high = recall_intervals(result, DEFAULT).auc
        assert low < result.auc < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2
    assert recall_intervals(few, DEFAULT).auc == recall_intervals(few, DEFAULT).auc
    assert (
        recall_intervals(few, DEFAULT).auc != recall_intervals(few, EvaluationSettings(seed=2)).auc
    )


def test_one_video_has_an_interval_of_no_width():
    result = average_recall_activitynet(*random_problem(1))
    assert recall_intervals(result, DEFAULT).auc == pytest.approx((result.auc, result.auc))
