"""Another workflow takes ours by Snakemake's `module`."""

import re

import pytest

from runs.conftest import ROOT, snakemake

pytestmark = pytest.mark.workflow

SNAKEFILE = f"""
configfile: "mine.yaml"

module actionspan:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config["actionspan"]

use rule * from actionspan as actionspan_*

rule count:
    input: "results/dataset/subsets/training.tsv"
    output: "count.txt"
    shell: "wc -l < {{input}} > {{output}}"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    demo = "demo: {videos: 4, shortest_seconds: 5.0, longest_seconds: 5.5}"
    (tmp_path / "mine.yaml").write_text(f"actionspan:\n  {demo}\n")
    return tmp_path


def test_its_files_are_inputs_of_other_rules(folder):
    done = snakemake(folder, "--cores", "2", "count.txt")
    assert done.returncode == 0, done.stderr
    assert int((folder / "count.txt").read_text()) >= 2
    assert len((folder / "results/dataset/videos.tsv").read_text().splitlines()) == 1 + 4


def test_a_prefix_moves_results_and_not_the_files_that_people_give(folder):
    moved = SNAKEFILE.replace("    config:", '    prefix: "there"\n    config:').replace(
        "results/dataset", "there/results/dataset"
    )
    (folder / "Snakefile").write_text(moved)
    (folder / "mine.yaml").write_text("actionspan: {dataset: {videos: ., annotations: a.csv}}\n")
    (folder / "a.csv").write_text("video,start,end,label\na,0,1,jump\n")
    (folder / "a.mp4").write_text("stub")
    done = snakemake(folder, "--cores", "2", "--dry-run", "count.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "actionspan_dataset_subset" in done.stdout


COLLECTED = f"""
include: "{ROOT}/Snakefile"

import gc
print("planning:", gc.isenabled(), file=sys.stderr)

onsuccess:
    print("running:", gc.isenabled(), file=sys.stderr)
"""


def test_memory_is_collected_from_the_first_job_on(tmp_path):
    (tmp_path / "Snakefile").write_text(COLLECTED)
    done = snakemake(tmp_path, "--cores", "2", "results/features/recipe.json")
    assert done.returncode == 0, done.stderr
    assert "planning: False\n" in done.stderr
    assert "running: True\n" in done.stderr


def test_the_snippet_of_the_docs_makes_everything(tmp_path):
    page = (ROOT / "config/README.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "Snakefile").write_text(snippet)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("dataset: {videos: demo}\n")
    done = snakemake(tmp_path, "--cores", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "actionspan_report_index" in done.stdout
    assert "not present in the Snakefile" not in done.stdout + done.stderr  # rules to run here


def test_values_of_the_command_line_have_the_types_of_their_settings(folder):
    folds = ["--config", "actionspan={evaluation: {folds: 2}}"]
    done = snakemake(folder, "--cores", "2", "--dry-run", "actionspan_folds", *folds)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "actionspan_dataset_folds" in done.stdout


def test_a_wrong_key_is_one_line(folder):
    (folder / "mine.yaml").write_text("actionspan: {video: {stall: 3}}\n")
    done = snakemake(folder, "--cores", "2", "--dry-run", "actionspan_all")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("mine.yaml: video.stall: unknown key; ")


@pytest.mark.parametrize(
    ("snakefile", "config"),
    [
        ("Snakefile", "config.yaml"),
        ("workflow/Snakefile", "config/config.yaml"),  # that snakedeploy copies
        ("workflow/Snakefile", ".test/config/config.yaml"),  # of the catalogue's test
    ],
)
def test_either_file_makes_everything_by_the_configurations_that_come_with_it(
    tmp_path, snakefile, config
):
    words = ("--snakefile", ROOT / snakefile, "--dry-run", "--configfile", ROOT / config)
    done = snakemake(tmp_path, "--cores", "2", *words)
    assert done.returncode == 0, done.stderr
    assert "report_index" in done.stdout
