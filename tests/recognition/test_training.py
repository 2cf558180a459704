"""Training of classifiers in one process: what is learned, and that a kill changes nothing."""

import json
from pathlib import Path

import h5py
import pytest
import torch

from actionspan.errors import InputError
from actionspan.parallel.settings import ParallelSettings
from actionspan.recognition import training as module
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.settings import PARTS, RecognitionSettings
from actionspan.recognition.training import caption, train
from actionspan.storage.model_files import read_model, write_model
from actionspan.storage.writing import read_tsv
from actionspan.training.trainer import CHECKPOINT
from recognition.learning import STACK, kill_in_epoch, tiny, write_task
from tiers import first_tier

FILES = ("model.safetensors", "scores.json")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("clips") / "clips.h5")


@pytest.fixture
def learn(clips: Path, tmp_path: Path):
    def run(name: str = "out", stream: str = "rgb", learners: int = 1, rgb=None, **changed) -> Path:
        settings = tiny(**changed)
        averages = {"average_state": settings.is_on("average_state")}
        averages["averaging_steps"] = settings.averaging_steps
        how = {"learners": learners, "parallel": ParallelSettings(**averages)}
        train([clips], stream, settings, tmp_path / name, rgb_model=rgb, **how)
        return tmp_path / name

    return run


def rows(out: Path) -> list[dict[str, str]]:
    return read_tsv(out / "log.tsv")


def column(out: Path, name: str) -> list[float]:
    return [float(row[name]) for row in rows(out)]


LEARNED = [("tiny", stream, learners, 12) for stream in ("rgb", "flow") for learners in (1, 2)]
LEARNED.append(("resnet18", "flow", 1, 3))


@pytest.mark.parametrize(
    ("network", "stream", "learners", "epochs"), first_tier(LEARNED, LEARNED[0], LEARNED[3])
)
def test_differences_are_learned(learn, clips, network, stream, learners, epochs):
    options = {"network": network, "epochs": epochs, "aavg": ()}
    options["learning_rate"] = 0.001 if network == "tiny" else 0.0003
    out = learn(stream=stream, learners=learners, **options)
    scores = json.loads((out / "scores.json").read_text())
    assert scores["accuracy"] == 1.0
    assert f"adam at {options['learning_rate']}, {learners} learner" in scores["trained"]
    assert scores["classes"] == ["bright", "dark", "background"]
    store = ClipStore([clips])
    chosen = [clip for clip in store.clips if clip.subset == "validation"]
    assert scores["clips"] == [clip.clip_id for clip in chosen]
    assert scores["labels"] == [clip.label for clip in chosen]
    guesses = [max(range(3), key=each.__getitem__) for each in scores["probabilities"]]
    assert guesses == scores["labels"]
    assert all(sum(each) == pytest.approx(1) for each in scores["probabilities"])
    assert column(out, "samples")[:3] == [12, 24, 36]
    assert not (out / CHECKPOINT).exists()


@pytest.mark.full
def test_learners_average_once_an_epoch_or_every_k_of_their_steps(learn):
    """12 clips, 2 learners with batches of 2: 3 steps an epoch, after which there is an average."""
    for steps, wanted in ((-1, [1, 2, 3]), (1, [3, 6, 9]), (2, [2, 4, 6]), (5, [1, 2, 3])):
        out = learn(f"k{steps}", learners=2, averaging_steps=steps, aavg=())
        assert column(out, "averages") == wanted


@pytest.fixture
def found(monkeypatch):
    """Let validation find these accuracies, one after the other."""

    def plan(*accuracies: float) -> None:
        left = iter(accuracies)
        monkeypatch.setattr(module, "accuracy", lambda *_: next(left))

    return plan


def test_the_batch_grows_when_the_accuracy_falls(learn, found):
    accuracies = (0.5, 0.7, 0.6, 0.7, 0.4, 1.0)
    grown = [2, 2, 2, 4, 4, 7]
    for parts, wanted in (((), [2] * 6), (PARTS[:1], grown), (PARTS, grown)):
        found(*accuracies, 0.0)
        out = learn(f"parts{len(parts)}", aavg=parts, batch_cap=7, epochs=6)
        assert column(out, "validation_accuracy") == list(accuracies)
        assert column(out, "batch_size") == wanted


@pytest.mark.parametrize("parts", first_tier([1, 2], 2))
def test_a_killed_training_resumes_to_the_same_bits(learn, monkeypatch, parts):
    options = {"learners": 2, "aavg": PARTS[:parts], "epochs": 4}
    whole = learn("whole", **options)
    with kill_in_epoch(monkeypatch, 3):
        learn("killed", **options)
    epochs, train_epoch = [], module.RecognitionTrainer.train_epoch

    def counted(trainer, epoch):
        epochs.append(epoch)
        return train_epoch(trainer, epoch)

    monkeypatch.setattr(module.RecognitionTrainer, "train_epoch", counted)
    resumed = learn("killed", **options)
    assert epochs == [3, 4]
    for name in FILES:
        assert (resumed / name).read_bytes() == (whole / name).read_bytes()
    timeless = [[list(row.values())[:-3] for row in rows(out)] for out in (whole, resumed)]
    assert timeless[0] == timeless[1]


def test_a_checkpoint_of_other_settings_is_not_used(learn, monkeypatch, capsys):
    with kill_in_epoch(monkeypatch, 2):
        learn()
    changed = learn(seed=2)
    assert "made with different settings or data; starting over" in capsys.readouterr().err
    one, other = (out / "model.safetensors" for out in (changed, learn("fresh", seed=2)))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.full
def test_flow_starts_from_the_rgb_network(learn):
    """With a learning rate of almost nothing the flow network is what it started from."""
    rgb = learn("rgb", network="resnet18", epochs=1) / "model.safetensors"
    still = {"epochs": 1, "learning_rate": 1e-20, "optimiser": "sgd", "keep": "last"}
    still["network"] = "resnet18"
    flow = learn("flow", stream="flow", rgb=rgb, **still) / "model.safetensors"
    before, after = (read_model(path).value["state_dict"] for path in (rgb, flow))
    kernel = before["conv1.weight"].mean(dim=1, keepdim=True).repeat(1, 2 * STACK, 1, 1)
    torch.testing.assert_close(after["conv1.weight"], kernel, rtol=0, atol=1e-12)
    same = [name for name in before if "running" not in name and "num_batches" not in name]
    assert "fc.weight" in same
    for name in set(same) - {"conv1.weight"}:
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-12)
    alone = learn("alone", stream="flow", aavg=PARTS[:2], **still) / "model.safetensors"
    other = read_model(alone).value["state_dict"]
    assert not torch.equal(other["fc.weight"], after["fc.weight"])


def test_the_best_epoch_is_kept_or_the_last(learn, found):
    """The first of two that are equally good; what it was is what a shorter training ends with."""
    weights = {}
    last = {"keep": "last"}
    for name, options in (("best", {}), ("last", last), ("short", {**last, "epochs": 2})):
        found(0.2, 0.9, 0.9, 0.0)
        out = learn(name, aavg=(), **options)
        weights[name] = read_model(out / "model.safetensors").value["state_dict"]
    assert all(torch.equal(weights["best"][key], weights["short"][key]) for key in weights["best"])
    assert not torch.equal(weights["best"]["fc.weight"], weights["last"]["fc.weight"])


def test_without_validation_clips_the_last_epoch_is_kept(tmp_path, capsys):
    clips = write_task(tmp_path / "clips.h5", training=2, validation=0)
    train([clips], "rgb", tiny(epochs=2), tmp_path / "out")
    assert "no validation clip; the last epoch is kept" in capsys.readouterr().err
    scores = json.loads((tmp_path / "out/scores.json").read_text())
    assert (scores["accuracy"], scores["probabilities"]) == (None, [])
    assert column(tmp_path / "out", "batch_size") == [2.0, 2.0]


def test_mistakes_are_one_line(learn, clips, tmp_path):
    named = read_model(learn("rgb", epochs=1) / "model.safetensors").value
    write_model(tmp_path / "other.pt", {**named, "network": "resnet34"})
    write_model(tmp_path / "named.pt", {**named, "classes": ["a", "b", "c"]})
    flow = learn("flow", stream="flow", aavg=PARTS[:2], epochs=1) / "model.safetensors"
    for given, message in (
        ({"learners": 13}, "clips.h5: 12 training clips for 13 learners"),
        ({"stream": "flow"}, "--rgb-model is missing: transfer needs model.safetensors"),
        ({"stream": "flow", "rgb": tmp_path / "none.pt"}, "none.pt: no such file"),
        ({"stream": "flow", "rgb": tmp_path / "other.pt"}, "a resnet34, but the flow network is a"),
        ({"stream": "flow", "rgb": tmp_path / "named.pt"}, "its classes are a, b, c, but the clip"),
        ({"stream": "flow", "rgb": flow}, "a network of flow, but flow starts from rgb"),
        ({"network": "resnet18", "pretrained": True}, "no weights come with it; give a checkpoint"),
    ):
        with pytest.raises(InputError, match=message):
            learn(**given)
    with pytest.raises(InputError, match=r"mine.pt: not used with pretrained false; leave out"):
        train([clips], "rgb", tiny(), tmp_path / "out", weights=tmp_path / "mine.pt")


@pytest.mark.parametrize(
    "content", [b"video,label", b"a: 1", bytes(range(256)) * 9, b"\x80\x02\x8a"]
)
def test_a_file_that_is_no_model_is_one_line(learn, clips, tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    public = tiny(network="resnet18", pretrained=True)
    with pytest.raises(InputError, match=r"model.safetensors: not a complete model file"):
        learn(stream="flow", rgb=path)
    with pytest.raises(InputError, match=r"model.safetensors: not a safetensors file"):
        train([clips], "rgb", public, tmp_path / "out", weights=path)


def test_classes_without_training_clips_are_named(tmp_path, capsys):
    clips = write_task(tmp_path / "clips.h5", training=2, validation=1)
    with h5py.File(clips, "a") as file:
        for name in [name for name in file if name.startswith("training.dark")]:
            del file[name]
    train([clips], "rgb", tiny(epochs=1), tmp_path / "out")
    assert "no training clip of class 'dark'" in capsys.readouterr().err
    with h5py.File(clips, "a") as file:
        for name in [name for name in file if "bright" not in name]:
            del file[name]
    with pytest.raises(InputError, match=r"clips.h5: one class, 'bright'; a classifier needs two"):
        train([clips], "rgb", tiny(), tmp_path / "out")


def test_the_caption_names_network_start_learners_and_data():
    settings = RecognitionSettings(epochs=3, learning_rate=0.0001)
    assert caption(settings, 2, None, "the rendered demo set") == (
        "efficientnet_lite0 from public weights, adam at 0.0001, 2 learners, 3 epochs, batches of "
        "16 a learner at the start, on the rendered demo set"
    )
    scratch = RecognitionSettings(pretrained=False)
    assert "from random weights, adam at 0.001, 1 learner, " in caption(scratch, 1, None, "")
    assert "from the weights a.pt, " in caption(scratch, 1, Path("x/a.pt"), "")
