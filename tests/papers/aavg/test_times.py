"""Time to equal accuracy: by hand from two logs, what leaves it open, and the printed times."""

import numpy as np
import pytest

from actionspan.storage.writing import read_tsv
from actionspan_papers.aavg.claims import SAMPLES, SPEEDUP, printed_findings
from actionspan_papers.aavg.readers import read_run_logs
from actionspan_papers.aavg.times import gain
from actionspan_papers.claims import VERDICTS
from papers.aavg.runs import named, write_log, write_scores
from papers.aavg.test_claims import T95, findings
from papers.steps import cells, outputs, run_step

REPRODUCED, NOT, UNKNOWN = VERDICTS
FEWER = "AAVG needs fewer samples to equal accuracy than one learner"
SOONER = "AAVG is super-linearly faster to equal accuracy"
# highest accuracy of both: 0.7 after 4 and 3 epochs; 0.9 after 2 and 4
JOINED = [[0.2, 0.5, 0.6, 0.8], [0.2, 0.9, 0.9, 0.9]]
ALONE = [[0.3, 0.6, 0.7, 0.7], [0.1, 0.2, 0.3, 0.9]]


def logs_of(folder, joined=JOINED, alone=ALONE, stream="rgb", **columns):
    """Epochs of 4 seconds for two learners and of 10 for one, 12 samples each."""
    columns = {"seconds": [4.0] * 4, "communication_seconds": [0.1] * 4, **columns}
    return [
        *(
            write_log(folder, name, stream, own, **columns)
            for name, own in zip(named("aavg3-epoch-2", 2), joined, strict=False)
        ),
        *(
            write_log(folder, name, stream, own)
            for name, own in zip(named("none-k1-1", 2), alone, strict=True)
        ),
    ]


def test_equal_accuracy_is_the_highest_that_both_reach(tmp_path):
    joined, alone = read_run_logs(logs_of(tmp_path)).values()
    found = gain(alone, joined)
    assert found.accuracy == pytest.approx([70, 90])
    assert found.samples == pytest.approx([3 / 4, 4 / 2])
    assert found.speedup == pytest.approx([30 / 16, 40 / 8])


def test_seeds_are_paired(tmp_path):
    files = logs_of(tmp_path)
    joined, alone = read_run_logs([files[1], *files[2:]]).values()
    assert gain(alone, joined).accuracy == pytest.approx([90])


def test_the_table_has_ours_and_the_printed(tmp_path):
    scores = write_scores(tmp_path, "aavg3-epoch-2", "rgb", [0.9])
    silent = {"communication_seconds": [0] * 4, "sent_bytes": [0] * 4}
    files = [*logs_of(tmp_path), *logs_of(tmp_path, stream="flow", **silent)]
    words = [*outputs(tmp_path, "t"), "--logs", *files, "--scores", scores]
    run_step("aavg", "times", *words)
    rgb, flow, *printed = read_tsv(tmp_path / "t.tsv")
    assert (rgb["way"], rgb["learners"], rgb["seeds"]) == ("aavg3-epoch", "2", "2")
    assert (rgb["accuracy"], rgb["samples"], rgb["speedup"]) == ("80.00", "1.38", "3.44")
    assert rgb["per_learner"] == "1.72"
    assert float(rgb["samples_high"]) == pytest.approx(1.375 + T95 * 0.625, abs=0.01)
    assert (flow["samples"], flow["speedup"]) == ("1.38", "")  # in one process: no time
    # 2067 / 61, 720 / 61 and 2880 / 439
    assert [row["speedup"] for row in printed] == ["33.89", "11.80", "6.56"]
    assert [row["per_learner"] for row in printed] == ["2.12", "0.74", "0.41"]
    assert cells(tmp_path / "t.md")[2][:4] == ["aavg3-epoch", "RGB", "2", "2"]


def test_half_the_epochs_of_half_the_time_are_super_linear(tmp_path):
    files = logs_of(tmp_path, joined=[JOINED[1]] * 2, alone=[ALONE[1]] * 2)
    found = findings(logs=files)
    fewer, sooner = found[FEWER, f"{SAMPLES}, RGB"], found[SOONER, f"{SPEEDUP}, RGB"]
    assert (fewer.difference, fewer.verdict) == (pytest.approx(1), REPRODUCED)
    assert (sooner.difference, sooner.verdict) == (pytest.approx(1.5), REPRODUCED)
    slow = logs_of(tmp_path / "slow", joined=[JOINED[0]] * 2, alone=[ALONE[0]] * 2)
    found = findings(logs=slow)
    assert found[FEWER, f"{SAMPLES}, RGB"].difference == pytest.approx(-0.25)
    assert found[SOONER, f"{SPEEDUP}, RGB"].verdict == NOT  # 30 / 16 by two learners


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"joined": JOINED[:1]}, "One seed of aavg3-epoch and none-k1 says nothing"),
        ({"joined": []}, "There are no runs of aavg3-epoch."),
        ({"alone": np.full((2, 4), np.nan)}, "There is no validation clip."),
        ({"communication_seconds": [0] * 4, "sent_bytes": [0] * 4}, "Its learners are in one proc"),
    ],
)
def test_what_leaves_time_open(tmp_path, changed, why):
    found = findings(logs=logs_of(tmp_path, **changed))[SOONER, f"{SPEEDUP}, RGB"]
    assert found.verdict == UNKNOWN
    assert found.why.startswith(why)


def test_the_printed_times_contradict_each_other():
    *printed, eamsgd = printed_findings()
    assert [one.verdict for one in printed] == [REPRODUCED, NOT, UNKNOWN]
    assert printed[0].difference == pytest.approx(2067 / 61 / 16 - 1)
    assert printed[1].difference == pytest.approx(720 / 61 / 16 - 1)
    assert "At least 6.6 times" in printed[2].why
    assert "4.9 days" in printed[2].why  # 439 minutes · 16
    assert (eamsgd.verdict, eamsgd.claim.worse) == (UNKNOWN, "EAMSGD")
