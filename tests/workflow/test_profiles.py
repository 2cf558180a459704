"""The profile of this machine, and what a person reads when a job fails."""

import numpy as np
import pytest

from workflow.conftest import copy_program

pytestmark = pytest.mark.workflow


def test_a_failure_is_one_block_with_the_last_lines_and_the_log(tmp_path):
    own = copy_program(tmp_path)
    (tmp_path / "truth.csv").write_text("no,header\n")
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy/v.npy", np.zeros((5, 3), np.float32))
    config = {
        "dataset": {"videos": None, "annotations": "truth.csv"},
        "features": {"source": "external", "external": {"folder": "npy"}},
    }
    profile = ("--workflow-profile", "workflow/profiles/default")
    done = own.snakemake("results/dataset/videos.tsv", *profile, config=config)
    assert done.returncode == 1
    assert "Using workflow specific profile workflow/profiles/default" in done.stderr
    head, reason, *_ = done.stderr[done.stderr.index("dataset_index failed;") :].splitlines()
    assert head == "dataset_index failed; its log is results/logs/dataset_index.log"
    assert "truth.csv: row 1: no column video" in reason
    assert done.stderr.count("its log is") == 1
