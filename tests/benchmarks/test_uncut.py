"""What is said of all folds together is made of the pairs within each."""

import json
from pathlib import Path

import numpy as np
import pytest

from actionspan.dataset.tables import Instance, Video
from folds import Footage, hashed_folds
from uncut import ranking, size


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


def footage(name, instances):
    facts = {"duration_seconds": 60.0, "fps": 25.0, "frames": 1500, "width": 8, "height": 8}
    video = Video(video_id=name, path=Path(name), sha256="", **facts)
    found = tuple(Instance(start=at, end=at + 1.0, label="") for at in range(instances))
    return Footage(video=video, instances=found, times=np.zeros(0), rows={})


def test_the_line_above_a_table_says_on_what_it_rests_and_what_is_possible():
    videos = [footage("a1", 10), footage("a2", 4), footage("b1", 6), footage("c1", 0)]
    folds = hashed_folds(videos, 3, who := lambda name: name[0])
    # five of ten, four of four and five of six can be found
    assert size(videos, folds, who) == (
        "4 videos of 3, 4 minutes, 20 instances; 3 folds, each trained on 2 to 3 videos; "
        "found in the first five: of at most 70.0 %"
    )
