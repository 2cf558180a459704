"""`actionspan run`: what it hands to Snakemake, and what it says itself."""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from actionspan.cli import main
from worlds.warm import python


@pytest.fixture
def handed(tmp_path, monkeypatch):
    """Return what Snakemake is given for some words, in a folder without a workflow."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text("dataset: {videos: demo}\n")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/made.json").write_text("{}\n")
    called = []
    monkeypatch.setattr(os, "execv", lambda _, words: called.append(words))

    def run(*words: str) -> list[str]:
        assert main(["run", *words]) == 0
        snakefile = called[-1].index("--snakefile")
        return called[-1][snakefile + 2 :]

    return run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a"], ["a", "--configfile", "config.yaml"]),
        (["a", "--configfile", "my.yaml"], ["a", "--configfile", "config.yaml", "my.yaml"]),
        (["--configfiles", "my.yaml", "-F"], ["--configfiles", "config.yaml", "my.yaml", "-F"]),
        # one file alone belongs to this form: `a` is a target
        (
            ["--configfile=my.yaml", "a"],
            ["--configfile", "config.yaml", "my.yaml", "--rerun-incomplete", "a"],
        ),
    ],
)
def test_the_configuration_of_the_folder_comes_before_those_that_are_given(
    handed, tmp_path, words, expected
):
    (tmp_path / "config.yaml").write_text("")
    assert handed(*words) == expected


def test_without_a_configuration_words_stay_as_they_are(handed):
    words = ["a", "-j", "2", "--configfile", "my.yaml", "--config", "mpi={launcher: srun --mpi=x}"]
    assert handed(*words) == words


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("results/x.json", None, "--configfile results/x.json: not a configuration; "),
        ("results/made.json", b"{}", "--configfile results/made.json: not a configuration; "),
        ("tables", None, "--configfile tables: not a configuration; this flag takes all words"),
        ("b.yaml", b"\xff\xfe\x00", "b.yaml: not a text in UTF-8"),
        ("b.yaml", b"dataset: &x\n  videos: *x\n", "b.yaml: an alias (*) of its own parent"),
        ("b.yaml", b"dataset: &x [1, [*x]]\n", "b.yaml: an alias (*) of its own parent"),
        ("b.yaml", b"a: " + b"[" * 9000, "b.yaml: not a text in UTF-8, or nested too deep"),
    ],
)
def test_what_is_no_configuration_is_said_in_a_line(handed, tmp_path, capsys, name, content, line):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["run", "--configfile", "my.yaml", name, "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"actionspan run: {line}")
    assert said.count("\n") == 1


def test_what_snakemake_can_read_is_left_to_it(handed, tmp_path):
    for text in ("", "[1", '{\t"dataset": {}}', "a: &x {b: 1}\nc: *x\nd: {<<: *x}\n"):
        (tmp_path / "b.yaml").write_text(text)
        assert handed("--configfile", "b.yaml")[-1] == "b.yaml"


GIVE = "--config takes SECTION='{KEY: VALUE}', as evaluation='{folds: 5}', after targets"
PROFILES = Path(__file__).parents[2] / "workflow/profiles"
without_slurm = pytest.mark.skipif(
    find_spec("snakemake_executor_plugin_slurm") is not None, reason="it is installed here"
)


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        (
            ["--cluster", "sbatch"],
            "actionspan run: ",
            "; removed in Snakemake 8; give --workflow-profile FOLDER (docs/cluster.md)",
        ),
        (["--cores", "2", "--nosuch"], "actionspan run: unrecognized arguments: --nosuch", ""),
        (["--config", "evaluation.folds=5"], f"Error: {GIVE}", ""),
        (["--config", "evaluation={folds: 2}", "folds"], f"Error: {GIVE}", ""),
        *(
            pytest.param(
                [flag, name],
                "actionspan run: argument --executor/-e: invalid choice: ",
                "; pip install 'actionspan[slurm]'",
                marks=without_slurm,
            )
            for flag, name in (
                ("--executor", "slurm"),
                ("--workflow-profile", str(PROFILES / "slurm")),
                ("--workflow-profile", str(PROFILES / "cluster-generic")),
            )
        ),
    ],
)
def test_a_wrong_flag_is_one_line(tmp_path, words, start, end):
    command = [python(), "-m", "actionspan", "run", "--dry-run", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}  # a dry run uses both
    done = subprocess.run(command, cwd=tmp_path, text=True, timeout=120, **pipes)
    assert done.returncode in (1, 2)
    *before, line = done.stdout.splitlines()
    assert line.startswith(start)
    assert line.endswith(end)
    assert all(other.startswith("Using ") for other in before)
