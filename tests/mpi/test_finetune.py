"""Encoders tuned on ranks: the same gradient on any number of them, whatever the exchange."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from actionspan.parallel.settings import ExchangeName, processes
from actionspan.storage.writing import read_tsv
from mpi.conftest import Mpirun
from mpi.finetune_cases import run
from tiers import first_tier

CASES = Path(__file__).with_name("finetune_cases.py")
# the batch of 3 videos is one rank's two passes and another's one; the last step has one video
SETTINGS = {"epochs": 2, "batch_size": 3, "keep": "best", "keep_ratio": 0.5}
SUMMED: tuple[ExchangeName, ...] = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
OWN: tuple[ExchangeName, ...] = ("ps_async", "aavg", "periodic")  # these make steps of their own
SPLIT = ("ring-3-split", "none-1-split")
IMPORTANCE = ("ps-2-importance", "none-1-importance")
ALIKE = [*((f"{name}-2", "none-1") for name in SUMMED), ("ring-3", "none-1"), SPLIT, IMPORTANCE]


def case(folder: Path, exchange: ExchangeName, ranks: int, **changed: Any) -> dict[str, Any]:
    name = "-".join([exchange, str(ranks), *map(str, changed.values())])
    return {
        "toy": str(folder / "toys"),
        "out": str(folder / name),
        "ranks": processes(exchange, ranks),
        "exchange": exchange,
        "settings": {**SETTINGS, **changed},
    }


@pytest.fixture(scope="module")
def folder(mpirun: Mpirun, tmp_path_factory: pytest.TempPathFactory, both_tiers: bool) -> Path:
    """All tunings, those on ranks in one job; in the first tier a ring of three ranks."""
    folder = tmp_path_factory.mktemp("tunings")
    cases = [case(folder, "ring", 3, execution="split")]
    alone = [case(folder, "none", 1, execution="split")]
    if both_tiers:
        cases += [case(folder, exchange, 2) for exchange in (*SUMMED, *OWN)]
        cases += [case(folder, "ring", 3), case(folder, "ps", 2, sampler="importance")]
        alone += [case(folder, "none", 1), case(folder, "none", 1, sampler="importance")]
    (folder / "cases.json").write_text(json.dumps(cases))
    mpirun(3, CASES, folder / "cases.json", timeout=400)
    for each in alone:
        run(each, None)
    return folder


@pytest.mark.parametrize(("name", "alone"), first_tier(ALIKE, SPLIT))
def test_ranks_have_the_gradient_and_the_course_of_one_process(folder, name, alone):
    if "ps-" not in name:  # a server has no gradient of its own
        made, expected = (torch.load(folder / each / "gradients.pt") for each in (name, alone))
        assert len(made) == len(expected) > 10
        for one, other in zip(made, expected, strict=True):
            near = 1e-6 * float(other.abs().max())
            torch.testing.assert_close(one, other, rtol=1e-5, atol=near)
    made, expected = (read_tsv(folder / each / "log.tsv") for each in (name, alone))
    for one, other in zip(made, expected, strict=True):
        for column in ("training_loss", "choosing_precision", "validation_precision"):
            assert float(one[column]) == pytest.approx(float(other[column]), rel=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("exchange", OWN)
def test_ranks_of_their_own_steps_end_with_one_model(folder, exchange):
    losses, alone = (
        [float(row["training_loss"]) for row in read_tsv(folder / name / "log.tsv")]
        for name in (f"{exchange}-2", "none-1")
    )
    # the same weights at the start, and the loss of each rank is that of its own videos
    assert losses[0] == pytest.approx(alone[0], rel=0.3)
    assert (folder / f"{exchange}-2/rgb/model.safetensors").exists()
