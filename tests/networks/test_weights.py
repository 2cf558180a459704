"""Checkpoints: names as trainers leave them, safe loading, widening, folded batch norms."""

import copy
import pickle
from pathlib import Path
from unittest.mock import Mock
from urllib.error import URLError

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from actionspan.errors import InputError
from actionspan.features.encoders import build_network
from actionspan.networks.bn_inception import BNInception
from actionspan.networks.weights import fill, fold_batch_norms, load_state, unfolded_state, widen


@pytest.fixture(scope="module")
def drawn():
    torch.manual_seed(0)
    return BNInception(classes=7).state_dict()


@pytest.fixture
def state(drawn):
    return drawn.copy()


def save(path: Path, content: object) -> Path:
    torch.save(content, path)
    return path


@pytest.mark.parametrize("prefix", ["", "module.", "base_model.", "module.base_model."])
@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
@pytest.mark.parametrize("classifier", ["last_linear", "fc", "new_fc"])
def test_names_lose_the_prefixes_of_trainers(tmp_path, state, prefix, wrapper, classifier):
    short = torch.zeros(1)  # only names count here
    names = {prefix + name.replace("last_linear", classifier): short for name in state}
    path = save(tmp_path / "a.pth", {wrapper: names, "epoch": 3} if wrapper else names)
    loaded = load_state("bn_inception", path, "last_linear")
    assert set(loaded) == set(state)


def test_safetensors_load_too(tmp_path, state):
    save_file(state, tmp_path / "a.safetensors")
    loaded = load_state("bn_inception", tmp_path / "a.safetensors", "last_linear")
    assert torch.equal(loaded["conv1_7x7_s2.weight"], state["conv1_7x7_s2.weight"])


def test_norms_saved_as_rows_and_without_counters_are_accepted(state):
    old = {
        name: value[None] if "_bn." in name else value
        for name, value in state.items()
        if not name.endswith("num_batches_tracked")
    }
    network = BNInception(classes=7)
    fill(network, old, "old.pth")
    assert torch.equal(network.state_dict()["conv2_3x3_bn.weight"], state["conv2_3x3_bn.weight"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inception_3a_1x1.bias": None}, r"x\.pth: .*lacks inception_3a_1x1\.bias"),
        ({"layer9.weight": torch.zeros(1)}, r"x\.pth: .*has the unknown layer9\.weight"),
        (
            {"conv2_3x3.weight": torch.zeros(2, 2)},
            r"conv2_3x3\.weight has shape \(2, 2\), the network",
        ),
    ],
)
def test_a_parameter_that_does_not_fit_is_named(state, changed, message):
    wrong = {name: value for name, value in (state | changed).items() if value is not None}
    with pytest.raises(InputError, match=message):
        fill(BNInception(classes=7), wrong, "x.pth")


def test_files_that_could_run_code_or_are_damaged_or_missing_are_refused(tmp_path):
    (tmp_path / "code.pth").write_bytes(pickle.dumps(nn.Linear, protocol=2))
    save(tmp_path / "module.pth", nn.Linear(2, 2))
    save(tmp_path / "list.pth", [1, 2])
    save(tmp_path / "empty.pth", {"epoch": 3})
    (tmp_path / "a.safetensors").write_bytes(b"damaged")
    for path, message in (
        (tmp_path / "code.pth", "not a checkpoint that loads safely"),
        (tmp_path / "module.pth", "not a checkpoint that loads safely"),
        (tmp_path / "list.pth", "not a state_dict but a list"),
        (tmp_path / "empty.pth", "holds no parameters"),
        (tmp_path / "a.safetensors", "not a safetensors file"),
        (tmp_path / "none.pth", "no such file"),
        (None, "bn_inception: no weights come with it; give a checkpoint"),
        (Path("IMAGENET1K_V1"), "torchvision has no weights for bn_inception"),
    ):
        with pytest.raises(InputError, match=message):
            load_state("bn_inception", path, "last_linear")


def test_torchvision_names_offline_are_one_line(monkeypatch):
    from torchvision.models import ResNet18_Weights

    fail = Mock(side_effect=URLError("no route"))
    monkeypatch.setattr(ResNet18_Weights, "get_state_dict", fail)
    with pytest.raises(InputError, match="torchvision could not fetch .*no route"):
        load_state("resnet18", Path("IMAGENET1K_V1"), "fc")
    with pytest.raises(InputError, match="weights for resnet18 are IMAGENET1K_V1"):
        load_state("resnet18", Path("IMAGENET9K"), "fc")


def test_a_widened_convolution_answers_grey_as_the_rgb_one_times_channels_over_3():
    rgb, flow = nn.Conv2d(3, 8, 5, bias=False), nn.Conv2d(10, 8, 5, bias=False)
    flow.weight = nn.Parameter(widen(rgb.weight, 10))
    grey = torch.randn(2, 1, 12, 12)
    expected = rgb(grey.expand(-1, 3, -1, -1)) * 10 / 3
    torch.testing.assert_close(flow(grey.expand(-1, 10, -1, -1)), expected)
    assert torch.equal(flow.weight, flow.weight[:, :1].expand_as(flow.weight))


def test_flow_checkpoints_keep_their_own_first_layer_and_rgb_ones_are_widened(tmp_path):
    torch.manual_seed(0)
    own = save(tmp_path / "flow.pth", BNInception(channels=10, classes=4).state_dict())
    rgb = save(tmp_path / "rgb.pth", BNInception(classes=4).state_dict())
    for path, source, width in ((own, "scores", 4), (rgb, "pooled", 1024)):
        network, features = build_network("bn_inception", path, 10, source)
        assert features == width
        assert network(torch.zeros(1, 10, 64, 64)).shape == (1, width)
    with pytest.raises(InputError, match=r"rgb\.pth: takes 3 input planes, this stream has 10"):
        build_network("bn_inception", rgb, 10, "scores")
    with pytest.raises(InputError, match=r"flow\.pth: takes 10 input planes, this stream has 6"):
        build_network("bn_inception", own, 6, "pooled")


def test_a_checkpoint_without_classifier_does_for_pooled_features_only(tmp_path):
    bare = BNInception(classes=1).state_dict()
    bare = {name: value for name, value in bare.items() if "last_linear" not in name}
    path = save(tmp_path / "bare.pth", bare)
    assert build_network("bn_inception", path, 3, "pooled")[1] == 1024
    with pytest.raises(InputError, match=r"bare\.pth: has no classifier"):
        build_network("bn_inception", path, 3, "scores")


def network(affine=True, bias=True, **how):
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4, affine=affine, **how)
    made = nn.Sequential(nn.Conv2d(3, 4, 3, bias=bias), norm)
    for values in norm.state_dict().values():
        if values.is_floating_point():
            values.uniform_(0.5, 2)
    return made.eval()


def folded(unfolded):
    made = copy.deepcopy(unfolded)
    assert fold_batch_norms(made) == 1
    return made


def test_the_type_is_kept_and_norms_without_running_statistics_are_refused():
    made = network().double()
    pictures = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(folded(made)(pictures), made(pictures), rtol=1e-13, atol=1e-13)
    message = "^the norm '1' has no running statistics: it cannot be folded$"
    with pytest.raises(ValueError, match=message):
        fold_batch_norms(network(track_running_stats=False))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 1e-3, 0.1])
def test_saved_loaded_and_folded_again_the_bits_are_the_same(affine, bias, eps):
    first = folded(network(affine, bias, eps=eps))
    state = unfolded_state(first.state_dict(), network(affine, bias, eps=eps))
    second = network(affine, bias, eps=eps)
    missing, unexpected = second.load_state_dict(state, strict=False)
    assert unexpected == []
    assert set(missing) <= {"1.num_batches_tracked"}
    again = folded(second).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in first.state_dict().items())
