"""Classifiers trained on ranks: the bits of learners in one process, for every variant of AAVG.

One job of three ranks trains all but the command's own (`recognition_cases.py`).
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from actionspan.recognition.settings import PARTS
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import read_tsv
from mpi.conftest import Mpirun
from mpi.recognition_cases import run
from recognition.learning import TINY, kill_in_epoch, write_task
from tiers import first_tier

CASES = Path(__file__).with_name("recognition_cases.py")
FILES = ("model.safetensors", "scores.json")
VARIANTS = [(0, 2, 3), (1, -1, 2), (2, 1, 2), (2, -1, 3)]  # so many parts, steps, learners
RESUMED = (1, 3)
PEERS = [("ps_async", 1), ("periodic", 0)]  # and how many serve
LINEAR = {"optimiser": "sgd", "batch_size": 5, "epochs": 2, "keep": "last"}
LINEAR |= {"aavg": PARTS[1:]}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """15 clips and 9 to validate: shares of learners differ, and so do ranks' shares of those."""
    return write_task(tmp_path_factory.mktemp("clips") / "clips.h5", training=5, validation=3)


@dataclass(frozen=True)
class Runs:
    """Folders of trainings, in this process (`alone/…`) and of one job of ranks (`ranks/…`)."""

    clips: Path
    folder: Path

    def case(self, name: str, learners: int, *, servers: int = 0, **options: Any) -> dict[str, Any]:
        """Describe a training with the output `name` in the folder."""
        how = {"exchange": "aavg", "stream": "rgb", "rgb_model": None}
        how |= {key: options.pop(key) for key in how if key in options}
        place = {"clips": str(self.clips), "out": str(self.folder / name)}
        ranks = {"ranks": learners + servers, "learners": learners}
        return {**place, **ranks, **how, "settings": options}

    def alone(self, name: str, learners: int, **options: Any) -> Path:
        run(self.case(name, learners, **options), None)
        return self.folder / name


@pytest.fixture(scope="module")
def runs(
    mpirun: Mpirun, clips: Path, tmp_path_factory: pytest.TempPathFactory, both_tiers: bool
) -> Runs:
    """All that is trained on ranks, in one job; some of it begun in this process and killed."""
    runs = Runs(clips, tmp_path_factory.mktemp("runs"))
    cases = [
        runs.case(f"ranks/{parts},{steps}", learners, aavg=PARTS[:parts], averaging_steps=steps)
        for parts, steps, learners in (VARIANTS if both_tiers else VARIANTS[-1:])
    ]
    if both_tiers:
        cases += _more(runs)
    (runs.folder / "cases.json").write_text(json.dumps(cases))
    mpirun(3, CASES, runs.folder / "cases.json", timeout=300)
    return runs


def _more(runs: Runs) -> list[dict[str, Any]]:
    """Return the cases of the second tier alone."""
    cases = []
    rgb = str(runs.alone("rgb", 1) / "model.safetensors")
    for parts in RESUMED:
        options: dict[str, Any] = {"stream": "flow", "rgb_model": rgb, "aavg": PARTS[:parts]}
        runs.alone(f"alone/{parts}", 2, **options)
        with pytest.MonkeyPatch.context() as patch, kill_in_epoch(patch, 3):
            runs.alone(f"ranks/{parts}", 2, **options)
        cases.append(runs.case(f"ranks/{parts}", 2, **options))
    cases += [
        runs.case("ranks/averaged", 3, averaging_steps=1, **LINEAR),
        runs.case("ranks/summed", 3, exchange="ring", **LINEAR),
    ]
    for exchange, servers in PEERS:
        options = {"exchange": exchange, "servers": servers, "aavg": (), "epochs": 6}
        cases.append(runs.case(f"ranks/{exchange}", 2, **options))
    return cases


def same(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


@pytest.mark.parametrize(("parts", "steps", "learners"), first_tier(VARIANTS, VARIANTS[-1]))
def test_ranks_and_one_process_give_the_same_bits(runs, parts, steps, learners):
    ranks, name = runs.folder / f"ranks/{parts},{steps}", f"alone/{parts},{steps}"
    alone = runs.alone(name, learners, aavg=PARTS[:parts], averaging_steps=steps)
    assert same(ranks, alone)
    sent = [float(row["sent_bytes"]) for row in read_tsv(ranks / "log.tsv")]
    assert sent[0] > 0
    assert {row["sent_bytes"] for row in read_tsv(alone / "log.tsv")} == {"0"}


@pytest.mark.full
def test_the_command_on_ranks_gives_the_bits_of_one_process(mpirun, runs, clips, tmp_path):
    """A real network, with the flags of the command line."""
    words = ["recognition", "train", "--clips", clips, "--out", tmp_path, "--stream=rgb"]
    words += ["--aavg", *PARTS[:2], "--averaging-steps=1"]
    for key, value in {**TINY, "network": "efficientnet_lite0", "epochs": 2}.items():
        name = key.replace("_", "-")
        words += [f"--no-{name}"] if value is False else [f"--{name}", value]
    mpirun(2, ["-m", "actionspan"], *words, "--learners=2", "--exchange=aavg", timeout=300)
    options = {"network": "efficientnet_lite0", "aavg": PARTS[:2], "averaging_steps": 1}
    assert same(tmp_path, runs.alone("alone/command", 2, epochs=2, **options))


@pytest.mark.full
@pytest.mark.parametrize("parts", RESUMED)
def test_ranks_go_on_where_one_process_was_killed(runs, parts):
    """A checkpoint holds each learner's own (Adam's moments, batch norms)."""
    assert same(runs.folder / f"ranks/{parts}", runs.folder / f"alone/{parts}")


@pytest.mark.full
def test_averaging_after_each_step_is_summing_gradients(runs):
    """With SGD, whose update is linear, and shares of equal size."""
    one, two = (
        read_model(runs.folder / f"ranks/{name}/model.safetensors").value["state_dict"]
        for name in ("averaged", "summed")
    )
    for name, value in one.items():
        if "running" not in name:  # the ring keeps the statistics of its first rank
            torch.testing.assert_close(value, two[name], rtol=1e-2, atol=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("exchange", [exchange for exchange, _ in PEERS])
def test_peers_train_too(runs, exchange):
    rows = read_tsv(runs.folder / f"ranks/{exchange}/log.tsv")
    losses = [float(row["training_loss"]) for row in rows]
    assert losses[-1] < losses[0]
    spent, exchanged = (
        sum(float(row[f"{name}seconds"]) for row in rows) for name in ("", "communication_")
    )
    assert exchanged < 0.95 * spent  # a learner's: a server does nothing but wait


@pytest.mark.full
@pytest.mark.parametrize("exchange", ["ring", "periodic"])
def test_a_learner_alone_needs_no_launcher(clips, tmp_path, exchange):
    words = ["recognition", "train", "--clips", clips, "--stream=rgb", "--out", tmp_path / "out"]
    words += ["--exchange", exchange, "--epochs=1", "--aavg", "--input-size=64"]
    words += ["--no-pretrained", "--validation-samples=1", "--final-samples=1"]
    command = [sys.executable, "-m", "actionspan", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/model.safetensors").exists()
