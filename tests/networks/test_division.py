"""Networks divided inside their blocks are the same networks, and can be cut anywhere."""

import copy

import pytest
import torch
import torchvision
from torch import nn

from actionspan.networks.architecture import architecture
from actionspan.networks.bn_inception import BNInception
from actionspan.networks.division import division
from actionspan.networks.division import stages as stages_of
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.streaming import Pipeline, balance_stages

NETWORKS = ("resnet18", "resnet50", "efficientnet_lite0")


def built(name):
    torch.manual_seed(0)
    return architecture(name).build(3, 7)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_chain_shares_all_tensors_and_gives_the_same_bits_forward_and_backward(name):
    network = built(name)
    shared = nn.ModuleList(division(network))
    assert {id(p) for p in shared.parameters()} == {id(p) for p in network.parameters()}
    assert {id(b) for b in shared.buffers()} == {id(b) for b in network.buffers()}
    chain = division(copy.deepcopy(network))
    copied = nn.ModuleList(chain)
    images = torch.rand(2, 3, 64, 64)
    for mode in (True, False):
        network.train(mode)
        copied.train(mode)
        expected, found = network(images), nn.Sequential(*chain)(images)
        assert torch.equal(found, expected)
    (expected**2).sum().backward()
    (found**2).sum().backward()
    gradients = (
        {(tuple(p.shape), float(p.grad.double().sum())) for p in module.parameters()}
        for module in (network, copied)
    )
    assert next(gradients) == next(gradients)


def test_other_modules_stay_whole():
    assert division(nn.Linear(2, 2)) is None
    assert division(nn.Sequential(nn.Linear(2, 2))) is None


def test_a_resnet_has_more_places_to_cut_than_blocks():
    assert len(division(built("resnet18"))) == 2 + 8 * 2 + 1
    assert len(division(built("resnet50"))) == 2 + 16 * 3 + 1


def test_a_pipeline_of_the_divided_network_answers_with_the_same_bits():
    network = built("efficientnet_lite0").eval()
    images = [torch.rand(1, 3, 64, 64) for _ in range(4)]
    stages = balance_stages(network, images[0], 5, divide=division, repetitions=1)
    with torch.no_grad(), Pipeline(stages) as pipeline:
        wanted = [network(image) for image in images]
        found = [answer.output for answer in pipeline.run(images)]
    assert all(map(torch.equal, found, wanted))


def test_a_skip_that_crosses_two_cuts_learns_as_the_network_does():
    """D stages on one sample again and again, with a rate of 0: the true gradients."""
    network = built("efficientnet_lite0").eval()
    layers = division(network)
    inside = next(n for n, layer in enumerate(layers) if type(layer).__name__ == "Along")
    cuts = [0, inside, inside + 1, len(layers)]
    stages = [nn.Sequential(*layers[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
    image, target = torch.rand(1, 3, 64, 64), torch.tensor([3])
    seen = []

    def keep(parameters):
        seen.append([p.grad.clone() for p in parameters])

    loss = nn.functional.cross_entropy
    make = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    with Pipeline(stages, loss=loss, optimiser=make, clip=[keep, None, None]) as pipeline:
        for _ in range(6):
            pipeline.step(image, target)
    network.zero_grad()
    loss(network(image), target).backward()
    wanted = [p.grad for p in stages[0].parameters()]
    assert all(torch.equal(a, b) for a, b in zip(seen[-1], wanted, strict=True))


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: EfficientNetLite0(3, 10), 7),
        (lambda: torchvision.models.resnet18(num_classes=10), 6),
        (lambda: BNInception(3, 10), None),
    ],
)
def test_stages_hold_all_parameters_once(build, count):
    with torch.device("meta"):
        network = build()
    parts = stages_of(network)
    assert count in (None, len(parts))
    held = [id(each) for part in parts for each in part.parameters()]
    assert len(held) == len(set(held))
    names = {id(each): name for name, each in network.named_parameters()}
    assert set(held) <= set(names)
    # all but the classifier of networks whose classifier is no stage
    assert all(name.startswith("_fc") for each, name in names.items() if each not in held)


def test_freezing_the_first_stages_leaves_their_gradients_out():
    network = EfficientNetLite0(3, 10).eval()
    parts = stages_of(network)
    nn.ModuleList(parts[:3]).requires_grad_(False)
    network(torch.rand(2, 3, 32, 32)).sum().backward()
    for number, part in enumerate(parts):
        assert {each.grad is None for each in part.parameters()} == {number < 3}
