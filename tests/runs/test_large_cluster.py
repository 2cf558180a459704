"""The number of jobs that a large set is on a cluster."""

import pytest
import yaml

from runs.conftest import ROOT, jobs_of, snakemake

pytestmark = pytest.mark.workflow


def test_20000_videos_are_at_most_500_jobs(tmp_path):
    (tmp_path / "videos").mkdir()
    for index in range(20_000):
        (tmp_path / f"videos/video_{index:06d}.mp4").touch()
    (tmp_path / "actions.csv").write_text("video,start,end,label\nvideo_000000,1,2,jump\n")
    words = ["--snakefile", str(ROOT / "Snakefile"), "--dry-run", "--quiet", "rules"]
    words += ["--configfile", str(ROOT / "examples/large_cluster.yaml"), "--cores", "2"]
    done = snakemake(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = jobs_of(done.stdout)
    profile = yaml.safe_load((ROOT / "workflow/profiles/slurm/config.yaml").read_text())
    together = dict(each.split("=") for each in profile["group-components"])
    probing = counts.pop("dataset_probe")
    jobs = counts["total"] - probing + -(-probing // int(together["probing"]))
    assert counts["features_encode"] == probing == -(-20_000 // 64)
    assert jobs <= 500
