"""The plug-ins of examples/plugins, from packages that are installed next to actionspan."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.plugins import plugins
from actionspan.storage.model_files import read_model
from actionspan.temporal import load_model
from temporal.conftest import write_toy
from worlds import warm
from worlds.tables import rows_of

ROOT = Path(__file__).parents[1]


def install(folder: Path, *examples: str) -> Path:
    """Install packages of the examples, and return the folder that they are in."""
    sources, target = [str(folder / name) for name in examples], folder / "site"
    for name in examples:  # pip builds where it reads
        shutil.copytree(ROOT / "examples/plugins" / name, folder / name)
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    words += ["--disable-pip-version-check", "--target", str(target), *sources]
    command = [sys.executable, "-m", "pip", "install", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder that the example packages are installed in."""
    return install(tmp_path_factory.mktemp("plugins"), "laps", "formats")


def test_the_formats_of_the_examples_are_read(installed, tmp_path):
    out = tmp_path / "mine.csv"
    sample = ROOT / "examples/plugins/formats/samples/elan_rows.txt"
    actionspan(installed, "dataset", "convert", sample, out)
    assert [row["label"] for row in rows_of(out)] == ["cut, stir", "fall"]


@pytest.mark.full
def test_the_doors_to_editors_are_installed(tmp_path):
    target = install(tmp_path, "editors")
    table, llc, labels = (tmp_path / name for name in ("mine.csv", "llc", "labels.json"))
    table.write_text("video,start,end,label\na,1,2,run\n")
    actionspan(target, "dataset", "convert", table, llc, "--to", "losslesscut")
    actionspan(target, "dataset", "convert", llc, labels, "--to", "fiftyone")
    assert json.loads(labels.read_text())["labels"]["a"] == [{"label": "run", "timestamps": [1, 2]}]
    assert "Read the time intervals of NWB files" in actionspan(target, "nwb", "--help")


def python(installed: Path, *words: object) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(installed), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [warm.python(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=installed)


def actionspan(installed: Path, *words: object, status: int = 0) -> str:
    """Run a command with what is installed; return what it prints, or its errors if it fails."""
    done = python(installed, "-m", "actionspan", *words)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def test_a_format_is_recognised_read_and_its_bad_rows_rejected(installed, tmp_path):
    (tmp_path / "laps.txt").write_text("LAPTIMER race\n1.5-4 lap\nfoo\n5-7.25 lap\n")
    out = tmp_path / "race.csv"
    words = ("-m", "actionspan", "dataset", "convert", tmp_path / "laps.txt", out)
    done = python(installed, *words)
    assert done.returncode == 0, done.stderr
    rows = [(row["video"], float(row["start"]), float(row["end"])) for row in rows_of(out)]
    assert rows == [("race", 1.5, 4.0), ("race", 5.0, 7.25)]
    assert "start-end is wanted" in done.stdout + done.stderr


def test_steps_are_listed_and_run(installed, tmp_path):
    table = tmp_path / "proposals.csv"
    table.write_text("video,start,end\na,0,1\na,2,9\n")
    assert "laps" in actionspan(installed, "--help")
    assert "Count the events of a table" in actionspan(installed, "laps", "--help")
    assert actionspan(installed, "laps", "count", "--proposals", table) == "2\n"
    assert "longest" in actionspan(installed, "evaluation", "--help")
    assert "'end': '9'" in actionspan(installed, "evaluation", "longest", "--proposals", table)
    missing = ("laps", "count", "--proposals", tmp_path / "none.csv")
    assert actionspan(installed, *missing, status=2).count("\n") == 1
    code = "from actionspan.workflow.steps import source_files, step_module\n"
    code += "print(*source_files(step_module('laps count')), sep='\\n')"
    files = python(installed, "-c", code).stdout.split()
    for name in ("laps/steps/count.py", "actionspan/errors.py"):
        assert any(file.endswith(name) for file in files)


ENCODE = """
from pathlib import Path
import numpy as np, torch
from actionspan.features.encoders import Encoder
from actionspan.features.settings import EncoderSettings
from actionspan.networks.architecture import architecture

torch.manual_seed(0)
torch.save(architecture("grey_means").build(3, 5).state_dict(), "weights.pt")
settings = EncoderSettings(rgb_encoder="grey_means", rgb_weights=Path("weights.pt"), input_size=64)
encoder = Encoder(settings.rgb_encoder, settings.rgb_weights, settings, 3)
frames = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
network = architecture("grey_means").build(3, 5)
network.load_state_dict(torch.load("weights.pt"))
levels = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
expected = network.first((levels - 127.5) / 127.5).relu().mean((2, 3)).detach().numpy()
assert encoder(frames).shape == (2, 16)
np.testing.assert_allclose(encoder(frames), expected, rtol=1e-4, atol=1e-5)
"""


def test_an_encoder_gives_what_its_last_layer_takes(installed):
    done = python(installed, "-c", ENCODE)
    assert done.returncode == 0, done.stderr


def test_a_network_is_trained_and_predicts(installed, tmp_path):
    toy = write_toy(tmp_path)
    data = ("--features", toy.features)
    words = ("--annotations", toy.annotations, "--model", "smooth", "--epochs", 2)
    run, predicted = tmp_path / "run", tmp_path / "probabilities.h5"
    model = run / "model.safetensors"
    actionspan(installed, "temporal", "train", *data, *words, "--out", run)
    actionspan(installed, "temporal", "predict", "--model", model, *data, "--out", predicted)
    # the network of the page, computed here
    network = nn.Conv1d(6, 3, 7, padding=3)
    state = read_model(model).value["state_dict"]
    network.load_state_dict({key.removeprefix("layers."): value for key, value in state.items()})
    with torch.no_grad(), h5py.File(predicted) as file:
        assert file["probabilities"].shape == (len(toy.video_id), 100, 3)
        expected = torch.sigmoid(network(torch.from_numpy(toy.array).mT)).mT
        np.testing.assert_allclose(file["probabilities"][()], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="smooth"):  # without the package
        load_model(model)


CHECK = """
import json, sys, yaml
from actionspan.errors import InputError
from actionspan.workflow.checking import check_config, check_settings
from actionspan.workflow.sections import fill_in

config = {}
fill_in(config)
config["features"]["encoders"]["rgb_encoder"] = sys.argv[1]
try:
    check_config(config, "my.yaml")
    check_settings(config, "my.yaml")
except InputError as error:
    print(error)
"""


def test_the_configuration_knows_the_names(installed):
    assert python(installed, "-c", CHECK, "grey_means").stdout == ""
    refused = python(installed, "-c", CHECK, "gray_means").stdout
    assert "rgb_encoder 'gray_means': one of" in refused
    assert "grey_means" in refused


def fake(folder: Path, name: str, points: str) -> None:
    """Put a package with entry points into a folder, as an installer does."""
    (folder / f"{name}.py").write_text("")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def fresh():
    plugins.cache_clear()
    yield
    plugins.cache_clear()


def test_a_name_that_is_taken_is_one_line(tmp_path, monkeypatch, fresh):
    fake(tmp_path, "one", "[actionspan.forms]\nelan = one:form\n")
    fake(tmp_path, "two", "[actionspan.networks]\ndeep = two:Net\n")
    fake(tmp_path, "three", "[actionspan.networks]\ndeep = three:Net\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"^plug-ins: actionspan.forms: elan is our own and one:f"):
        plugins("forms", ("elan",))
    with pytest.raises(InputError, match="deep is (two|three):Net and (two|three):Net; uninstall"):
        plugins("networks")


def test_a_plug_in_that_cannot_be_imported_is_one_line(tmp_path):
    fake(tmp_path, "broken", "[actionspan.forms]\nstrange = broken:form\n")
    (tmp_path / "laps.csv").write_text("video,start,end\na,0,1\n")
    words = ("dataset", "convert", tmp_path / "laps.csv", tmp_path / "x.csv")
    (line,) = actionspan(tmp_path, *words, status=2).splitlines()
    assert "plug-ins: actionspan.forms: strange: broken:form of broken:" in line


THEIRS = '[project]\nname = "theirs"\n[project.entry-points."actionspan.forms"]\nx = "json"\n'


@pytest.mark.parametrize("text", ["[tool.x]\n", THEIRS])
def test_a_project_that_the_package_lies_in_is_not_ours(tmp_path, monkeypatch, fresh, text):
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr("actionspan.plugins._CHECKOUT", tmp_path / "pyproject.toml")
    assert "x" not in plugins("forms")
