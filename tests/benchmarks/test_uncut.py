"""What is said of all folds together is made of the pairs within each."""

import json

import pytest

from uncut import ranking


def reader(folder, name, scores_right, scores_wrong):
    """A fold's record, of two videos."""
    pairs = [one > other for one in scores_right for other in scores_wrong]
    count = len(scores_right) + len(scores_wrong)
    events = {
        "ranking": sum(pairs) / len(pairs) if pairs else None,
        "precision": len(scores_right) / count if count else None,
        "per_video": count / 2,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"videos": 2, "lists": {"events": events}}))
    return path


def test_each_pair_of_a_fold_counts_the_same_and_no_pair_of_two_folds(tmp_path):
    one = reader(tmp_path, "one", [0.9, 0.8, 0.1], [0.5, 0.2])  # 4 of 6
    two = reader(tmp_path, "two", [0.03], [0.02, 0.04])  # 1 of 2; lower than all of the first
    sure = reader(tmp_path, "sure", [0.7, 0.6], [])  # no pair
    none = reader(tmp_path, "none", [], [])
    assert ranking([one, two, sure, none]) == pytest.approx(5 / 8)
    assert ranking([sure, none]) is None
