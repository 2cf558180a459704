"""Classifiers trained on ranks: the bits of learners in one process, for every variant of AAVG."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from actionspan.files.storage import read_tsv
from actionspan.parallel.settings import ParallelSettings
from actionspan.recognition.settings import PARTS, RecognitionSettings
from actionspan.recognition.training import train
from recognition.learning import TINY, kill_in_epoch, write_task

FILES = ("model.pt", "scores.json")
SMALL = {**TINY, "network": "efficientnet_lite0"}  # a third of resnet18's parameters


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("clips") / "clips.h5", training=5, validation=3)


@pytest.fixture
def on_ranks(mpirun, clips):
    def run(ranks: int, out: Path, *flags: str, exchange: str = "aavg", more: int = 0) -> Path:
        words = ["recognition", "train", "--clips", clips, "--out", out]
        for key, value in SMALL.items():
            name = key.replace("_", "-")
            words += [f"--no-{name}"] if value is False else [f"--{name}", value]
        words += ["--learners", ranks, "--exchange", exchange, *flags]
        mpirun(ranks + more, ["-m", "actionspan"], *words, timeout=300)
        return out

    return run


def in_process(clips, out, learners, stream="rgb", rgb=None, **changed):
    settings = RecognitionSettings(**{**SMALL, **changed})
    parallel = ParallelSettings(
        averaging_steps=settings.averaging_steps, average_state=settings.is_on("average_state")
    )
    train([clips], stream, settings, out, rgb_model=rgb, learners=learners, parallel=parallel)
    return out


def same(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


@pytest.mark.parametrize(
    ("parts", "steps", "learners"),
    [(0, 2, 3), (1, -1, 2), (2, 1, 2), (2, -1, 3)],
)
def test_ranks_and_one_process_give_the_same_bits(
    clips, on_ranks, tmp_path, parts, steps, learners
):
    """15 clips and 9 to validate: shares of learners differ, and so do ranks' shares of those."""
    flags = ["--aavg", *PARTS[:parts], f"--averaging-steps={steps}", "--stream=rgb"]
    ranks = on_ranks(learners, tmp_path / "ranks", *flags)
    options = {"aavg": PARTS[:parts], "averaging_steps": steps}
    alone = in_process(clips, tmp_path / "alone", learners, **options)
    assert same(ranks, alone)
    sent = [float(row["sent_bytes"]) for row in read_tsv(ranks / "log.tsv")]
    assert sent[0] > 0
    assert {row["sent_bytes"] for row in read_tsv(alone / "log.tsv")} == {"0"}


@pytest.mark.parametrize("parts", [1, 3])
def test_what_one_process_began_ranks_end(clips, on_ranks, tmp_path, monkeypatch, parts):
    """A checkpoint holds each learner's own (Adam's moments, batch norms)."""
    rgb = in_process(clips, tmp_path / "rgb", 1) / "model.pt"
    options = {"stream": "flow", "rgb": rgb, "aavg": PARTS[:parts]}
    whole = in_process(clips, tmp_path / "whole", 2, **options)
    with kill_in_epoch(monkeypatch, 3):
        in_process(clips, tmp_path / "out", 2, **options)
    flags = ["--aavg", *PARTS[:parts], "--stream=flow", f"--rgb-model={rgb}"]
    assert same(on_ranks(2, tmp_path / "out", *flags), whole)


def test_averaging_after_each_step_is_summing_gradients(clips, on_ranks, tmp_path):
    """With SGD, whose update is linear, and shares of equal size."""
    flags = ["--stream=rgb", "--optimiser=sgd", "--batch-size=5", "--epochs=2", "--keep=last"]
    flags += ["--aavg", *PARTS[1:]]
    averaged = on_ranks(3, tmp_path / "averaged", *flags, "--averaging-steps=1")
    summed = on_ranks(3, tmp_path / "summed", *flags, exchange="ring")
    one, two = (
        torch.load(out / "model.pt", weights_only=True)["state_dict"] for out in (averaged, summed)
    )
    for name, value in one.items():
        if "running" not in name:  # the ring keeps the statistics of its first rank
            torch.testing.assert_close(value, two[name], rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("exchange", "more"), [("ps_async", 1), ("periodic", 0)])
def test_peers_train_too(on_ranks, tmp_path, exchange, more):
    flags = ["--stream=rgb", "--aavg", "--epochs=6"]
    out = on_ranks(2, tmp_path / "out", *flags, exchange=exchange, more=more)
    rows = read_tsv(out / "log.tsv")
    losses = [float(row["training_loss"]) for row in rows]
    assert losses[-1] < losses[0]
    spent, exchanged = (
        sum(float(row[f"{name}seconds"]) for row in rows) for name in ("", "communication_")
    )
    assert exchanged < 0.95 * spent  # a learner's: a server does nothing but wait


def test_too_few_processes_are_one_line(mpirun, clips, tmp_path):
    words = ["recognition", "train", "--clips", clips, "--stream=rgb", "--out", tmp_path]
    done = mpirun(2, ["-m", "actionspan"], *words, "--learners=3", check=False)
    assert done.returncode == 2
    assert "--exchange aavg --learners 3: 3 processes are needed, 2 started" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("exchange", ["ring", "periodic"])
def test_a_learner_alone_needs_no_launcher(clips, tmp_path, exchange):
    words = ["recognition", "train", "--clips", clips, "--stream=rgb", "--out", tmp_path / "out"]
    words += ["--exchange", exchange, "--epochs=1", "--aavg", "--input-size=64"]
    words += ["--no-pretrained"]
    done = subprocess.run(
        [sys.executable, "-m", "actionspan", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/model.pt").exists()
