import pytest
import torch
import torchvision

from actionspan.networks.bn_inception import BNInception
from actionspan.networks.division import stages
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: EfficientNetLite0(3, 10), 6),
        (lambda: torchvision.models.resnet18(num_classes=10), 6),
        (lambda: BNInception(3, 10), None),
    ],
)
def test_stages_hold_all_parameters_once_and_in_order(build, count):
    with torch.device("meta"):
        network = build()
    parts = stages(network)
    assert count is None or len(parts) == count + (count == 6 and hasattr(network, "_blocks"))
    held = [id(each) for part in parts for each in part.parameters()]
    own = [id(each) for each in network.parameters()]
    assert len(held) == len(set(held))
    assert set(held) <= set(own)
    # all but the classifier of networks whose classifier is no stage
    missing = [name for name, each in network.named_parameters() if id(each) not in set(held)]
    assert all(name.startswith("_fc") for name in missing)


def test_freezing_the_first_stages_leaves_their_gradients_out():
    network = EfficientNetLite0(3, 10).eval()
    parts = stages(network)
    for part in parts[:3]:
        part.requires_grad_(False)
    network(torch.rand(2, 3, 32, 32)).sum().backward()
    for number, part in enumerate(parts):
        for each in part.parameters():
            assert (each.grad is None) == (number < 3)
