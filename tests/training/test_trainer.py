"""The engine with a toy module: resuming to the bit, keeping, logging, rates, one line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.jobs.determinism import seed_torch
from actionspan.parallel.member import Replica
from actionspan.parallel.model_averaging import InProcessAveraging
from actionspan.parallel.settings import ParallelSettings
from actionspan.storage.torch_files import write_sealed
from actionspan.storage.writing import read_tsv
from actionspan.training.settings import rate_after, rate_every
from actionspan.training.trainer import CHECKPOINT, Trainer, begin
from storage.changed import changed_leaves
from tiers import first_tier
from worlds.limits import files_of_at_most

EPOCHS = 5
COLUMNS = ("epoch", "learning_rate", "training_loss", "validation_loss", "drawn")


class Dice:
    """Random numbers that go on from epoch to epoch."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(1)

    def state(self):
        return self.generator.get_state()

    def restore(self, state):
        self.generator.set_state(state)


@dataclass(kw_only=True)
class ToyTrainer(Trainer[nn.Module]):
    """A trainer with the epochs and the validation of a `Toy`."""

    toy: Any = None

    def train_epoch(self, epoch):
        return self.toy.train_epoch(epoch)

    def validate(self):
        return self.toy.validate()


@dataclass
class Toy:
    """A training of a linear module with batch norm, Adam and dice, on one process."""

    folder: Path
    keep: Any = "best"
    average_after: int = 2
    digest: str = "toy"
    learners: int = 1
    whole: bool = True
    losses: Sequence[float] = ()  # of validation, an epoch each

    def __post_init__(self):
        self.checkpoint, self.trained = self.folder / CHECKPOINT, []

    def build(self, _=None):
        models = []
        for _ in range(self.learners):
            seed_torch(0)
            models.append(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
        optimisers = [torch.optim.Adam(model.parameters()) for model in models]
        settings = ParallelSettings(averaging_steps=2, average_state=self.whole)
        replica = (
            InProcessAveraging(models, optimisers, settings)
            if self.learners > 1
            else Replica(models[0], optimisers[0])
        )
        self.dice = Dice()
        return ToyTrainer(
            toy=self,
            digest=self.digest,
            model=models[0],
            replica=replica,
            learning_rate=lambda epoch: 0.1 / epoch,
            checkpoint=self.checkpoint,
            kept=self.keep,
            average_after=self.average_after,
            more=self.dice,
        )

    def train_epoch(self, epoch):
        total, drawn = 0.0, 0.0
        for step in range(3):
            for learner, (model, optimiser) in enumerate(self.trainer.replica.learners):
                if (epoch, step) == (self.killed_in, 1):
                    raise KeyboardInterrupt
                assert model.training
                seed_torch(epoch, step, learner)
                inputs = torch.randn(6, 3)
                roll = torch.rand((), generator=self.dice.generator)
                drawn += float(roll)
                optimiser.zero_grad()
                loss = (model(inputs)[:, 0] - roll * inputs.sum(dim=1)).square().mean()
                loss.backward()
                total += float(loss.detach())
            self.trainer.replica.step()
        self.trainer.replica.synchronise()
        self.trained.append(epoch)
        return {"training_loss": math.nan if epoch == self.spoilt_in else total, "drawn": drawn}

    def validate(self):
        epoch = self.trained[-1]
        self.weights_of[epoch] = copy_of(self.trainer.model.state_dict())
        return {"validation_loss": self.losses[epoch - 1] if self.losses else float(epoch)}

    def __call__(self, epochs=EPOCHS, killed_in=None, spoilt_in=None):
        """Train, from the checkpoint if there is one; return the weights that are kept."""
        self.killed_in, self.spoilt_in, self.weights_of = killed_in, spoilt_in, {}
        self.trainer = self.build()
        self.trainer.resume()
        self.made = self.trainer.fit(epochs)
        return copy_of(self.trainer.weights())


def copy_of(weights):
    return {name: value.clone() for name, value in weights.items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def logged(toy):
    return [[row[name] for name in COLUMNS] for row in toy.trainer.rows]


@pytest.mark.parametrize("keep", ["best", "average", "last"])
@pytest.mark.parametrize(
    "options", first_tier([{}, {"learners": 2}, {"learners": 2, "whole": False}], {"learners": 2})
)
def test_killed_in_any_epoch_it_ends_with_the_same_bits(tmp_path, keep, options):
    losses = [3.0, 1.0, 2.0, 1.0, 5.0]
    whole = Toy(tmp_path / "whole", keep=keep, losses=losses, **options)
    expected = whole()
    for killed_in in range(1, EPOCHS + 1):
        toy = Toy(tmp_path / str(killed_in), keep=keep, losses=losses, **options)
        with pytest.raises(KeyboardInterrupt):
            toy(killed_in=killed_in)
        assert toy.checkpoint.exists() == (killed_in > 1)
        assert same(toy(), expected)
        assert toy.made == EPOCHS - killed_in + 1
        assert toy.trained == list(range(1, EPOCHS + 1))
        assert logged(toy) == logged(whole)
        assert toy.checkpoint.exists()


def test_the_checkpoint_is_kept_until_the_results_are_written(tmp_path):
    """A training that is not to resume starts over from a checkpoint of its own settings."""
    toy, parallel = Toy(tmp_path), ParallelSettings()
    with pytest.raises(KeyboardInterrupt):
        toy(killed_in=3)
    reached = []
    for continued in (True, False):
        begun = begin(dict, toy.build, tmp_path, None, parallel, 1, continued=continued)
        killed = pytest.raises(KeyboardInterrupt)
        with killed, begun as trainer:
            reached.append(trainer.epoch)
            raise KeyboardInterrupt
        assert toy.checkpoint.exists()
    assert reached == [2, 0]
    with begin(dict, toy.build, tmp_path, None, parallel, 1):
        pass
    assert not toy.checkpoint.exists()


def test_killed_in_every_epoch_too(tmp_path):
    expected = Toy(tmp_path / "whole")()
    toy = Toy(tmp_path / "killed")
    for epoch in range(2, EPOCHS + 1):
        with pytest.raises(KeyboardInterrupt):
            toy(killed_in=epoch)
    assert same(toy(), expected)


def test_killed_after_the_last_epoch_nothing_is_trained_again(tmp_path):
    toy = Toy(tmp_path)
    expected, trained = toy(), list(toy.trained)
    assert same(toy(), expected)
    assert (toy.trained, toy.made) == (trained, 0)


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        ([3, 1, 2, 1, 5], 2),  # the first of two that are equally good
        ([5, 4, 3, 2, 1], 5),
        ([1, 2, 3, 4, 5], 1),
        ([math.nan, 4, 3, math.nan, 5], 3),
        ([2, math.nan, math.nan, 3, 3], 1),
    ],
)
def test_the_best_epoch_is_kept_or_the_last(tmp_path, losses, kept):
    best, last = (Toy(tmp_path / keep, keep=keep, losses=losses) for keep in ("best", "last"))
    assert same(best(), best.weights_of[kept])
    assert same(last(), last.weights_of[EPOCHS])
    assert not last.trainer.kept_weights, "the last epoch needs no copy of the weights"
    assert not same(best.weights_of[1], best.weights_of[2])


@pytest.mark.parametrize(
    ("after", "epochs"), [(4, [5]), (3, [4, 5]), (1, [2, 3, 4, 5]), (-7, [1, 2, 3, 4, 5])]
)
@pytest.mark.parametrize("learners", [1, 2])
def test_the_average_is_the_mean_of_the_weights_after_each_of_the_last_epochs(
    tmp_path, after, epochs, learners
):
    toy = Toy(tmp_path, keep="average", average_after=after, learners=learners)
    kept = toy()
    for name, value in kept.items():
        each = torch.stack([toy.weights_of[epoch][name].double() for epoch in epochs])
        if value.is_floating_point():
            torch.testing.assert_close(value.double(), each.mean(dim=0), rtol=1e-5, atol=1e-6)
        else:  # the batches that a batch norm has seen
            assert torch.equal(value, toy.weights_of[EPOCHS][name])
    assert same(kept, toy.weights_of[EPOCHS]) == (after == 4)
    if learners == 2:  # the learners go on from their own weights, not from the mean
        assert same(toy.trainer.replica.learners[1].model.state_dict(), toy.weights_of[EPOCHS])


def test_the_learning_rate_and_the_log_are_of_each_epoch(tmp_path):
    toy = Toy(tmp_path)
    toy()
    assert toy.trainer.replica.optimiser.param_groups[0]["lr"] == 0.1 / EPOCHS
    toy.trainer.log(tmp_path / "log.tsv", (*COLUMNS, "seconds"))
    rows = read_tsv(tmp_path / "log.tsv")
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [float(row["learning_rate"]) for row in rows] == [0.1 / n for n in range(1, 6)]
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_a_loss_that_is_no_number_stops_with_advice(tmp_path):
    toy = Toy(tmp_path)
    line = "the training loss is nan in epoch 3; lower learning_rate, now 0.1"
    with pytest.raises(InputError, match=line):
        toy(spoilt_in=3)
    assert len(toy.trainer.rows) == 2
    assert toy.checkpoint.exists()


def test_a_stale_checkpoint_is_one_line_and_training_starts_over(tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt):
        Toy(tmp_path)(killed_in=3)
    assert capsys.readouterr().err == ""
    toy = Toy(tmp_path, digest="changed")
    weights = toy()
    said = f"{toy.checkpoint}: made with different settings or data; starting over\n"
    assert capsys.readouterr().err == said
    assert toy.trained == [1, 2, 3, 4, 5]
    assert same(weights, Toy(tmp_path / "fresh")())


def refusal(look):
    """Return the line that refuses a checkpoint; nothing where it is not refused."""
    try:
        look()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.full
def test_a_damaged_checkpoint_is_one_line_whatever_was_changed(tmp_path):
    toy = Toy(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        toy(killed_in=3)
    path, trainer = toy.checkpoint, toy.build()
    damaged = f"{path}: damaged; delete it and run again"
    whole, content = path.read_bytes(), torch.load(path)
    trainer.resume()
    assert trainer.epoch == 2
    for change, other in (*changed_leaves(content), ("list", [1, 2])):
        torch.save(other, path)
        if change.startswith("digest: "):  # of other settings, as far as it says
            trainer.epoch = 0
            trainer.resume()
            assert trainer.epoch == 0, change
        else:
            assert refusal(trainer.resume) == damaged, change
    for size in range(0, len(whole), 701):
        path.write_bytes(whole[:size])
        assert refusal(trainer.resume) == damaged
    for name in ("model", "optimiser", "rows"):  # by someone who knows the seal
        write_sealed(path, {k: v for k, v in content.items() if k not in (name, "seal")})
        assert refusal(toy) == damaged


def test_resuming_is_said(tmp_path, capsys):
    toy = Toy(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        toy(killed_in=3)
    toy()
    assert capsys.readouterr().err == f"{toy.checkpoint}: resuming after epoch 2\n"


def test_without_room_for_the_checkpoint_the_one_before_stays(tmp_path):
    """A limit on the size of files stands for a full disk."""
    toy = Toy(tmp_path)
    expected = Toy(tmp_path / "whole")()
    with pytest.raises(KeyboardInterrupt):
        toy(killed_in=3)
    line = r"\.checkpoint\.pt: the file is larger than a file"
    with pytest.raises(InputError, match=line), files_of_at_most(1000):
        toy()
    assert [path.name for path in Path(tmp_path).iterdir() if path.is_file()] == [CHECKPOINT]
    toy.trained = [1, 2]
    assert same(toy(), expected)
    assert toy.trained == [1, 2, 3, 4, 5]


def test_a_checkpoint_holds_each_tensor_once(tmp_path):
    toy = Toy(tmp_path, keep="last")
    toy()
    state = toy.trainer.state()
    model = toy.trainer.model.state_dict()
    assert all(state["model"][name].data_ptr() == model[name].data_ptr() for name in model)
    assert state["kept_weights"] == {}


def test_a_group_with_a_share_has_that_part_of_the_learning_rate(tmp_path):
    class Shared(Toy):
        def build(self, _=None):
            run = super().build()
            run.replica.optimiser.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
            run.replica.optimiser.param_groups[1]["share"] = 0.1
            return run

        def train_epoch(self, epoch):
            rates.append([group["lr"] for group in self.trainer.replica.optimiser.param_groups])
            return super().train_epoch(epoch)

    rates = []
    Shared(tmp_path)(2)
    assert rates == [pytest.approx([0.1, 0.01]), pytest.approx([0.05, 0.005])]


@pytest.mark.filterwarnings("ignore:.*no-op")  # nothing can be copied to `meta`
@pytest.mark.parametrize("keep", ["best", "average"])
def test_weights_that_are_kept_come_back_to_where_the_model_is(keep):
    """A checkpoint is read into host memory; `meta` stands for a GPU."""

    def made(device):
        model = nn.Linear(2, 1, device=device)
        optimiser = torch.optim.SGD(model.parameters())
        how = {"digest": "", "learning_rate": lambda epoch: 0.1, "kept": keep}
        return ToyTrainer(model=model, replica=Replica(model, optimiser), **how)

    host, there = made("cpu"), made("meta")
    host.keep(1.0)
    host.epoch = 1
    there.restore(host.state())
    assert there.kept_weights.keys() == {"weight", "bias"}
    assert {str(each.device) for each in there.kept_weights.values()} == {"meta"}
    if keep == "average":
        there.keep(2.0)  # on two devices it would fail


def test_the_rate_falls_after_given_epochs():
    rates = [rate_after(0.5, 0.1, (2, 3), epoch) for epoch in range(1, 6)]
    assert rates == [0.5, 0.5, 0.5 * 0.1, 0.5 * 0.1**2, 0.5 * 0.1**2]


@pytest.mark.parametrize("every", [1, 2, 10])
def test_the_rate_falls_to_the_bit_as_torch_lets_it(every):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.01)
    torchs = torch.optim.lr_scheduler.StepLR(optimiser, every, gamma=0.1)
    for epoch in range(1, 25):
        assert rate_every(0.01, 0.1, every, epoch) == optimiser.param_groups[0]["lr"]
        optimiser.step()
        torchs.step()
