"""Encoders and videos of the tests, and how a gradient is taken."""

import copy

import torch
from torch import nn

from actionspan.memory.ways import make_way
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0
from actionspan.networks.weights import fold_batch_norms

CHANNELS = 3
SAMPLERS = (
    "uniform_random",
    "fixed",
    "diverse_feature",
    "diverse_gradient",
    "importance",
    "checkerboard",
)
SPLIT_SAMPLERS = tuple(s for s in SAMPLERS if s not in ("diverse_gradient", "importance"))
WAYS = [(sampler, "replay") for sampler in SAMPLERS] + [(s, "split") for s in SPLIT_SAMPLERS]


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


def tiny(seed=0):
    """Three parts, in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, CHANNELS)).double()


def video(count, seed=1):
    return torch.randn(count, 5, generator=seeded(seed), dtype=torch.float64)


class Head(nn.Module):
    """A network after the encoder that mixes all rows, with parameters of its own."""

    def __init__(self, channels=CHANNELS):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(5)
            self.mixed = nn.Conv1d(channels, 4, 3, padding=1)

    def forward(self, features):
        return self.mixed(features.T[None]).sin().square().sum()


def head_like(features):
    return Head(features.shape[1]).to(features)


class Step:
    """The features, the loss and the gradients of one step."""

    def __init__(self, encoder, frames, way="sbp", generator=None, key="", **how):
        self.encoder = copy.deepcopy(encoder)
        self.module = make_way(way, self.encoder, **how)
        self.run(frames, seeded() if generator is None else generator, key)

    def run(self, frames, generator, key=""):
        features = self.module(frames, generator=generator, key=key)
        head = head_like(features)
        loss = head(features)
        loss.backward()
        self.features, self.loss = features.detach(), loss.detach()
        self.head = [parameter.grad for parameter in head.parameters()]
        self.gradients = [parameter.grad for parameter in self.encoder.parameters()]


def full(encoder, frames):
    return Step(encoder, frames, "full")


def furthest(found, expected):
    """Return the largest difference of two lists of tensors, relative to the largest value."""
    scale = max(float(each.abs().max()) for each in expected)
    pairs = zip(found, expected, strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs) / scale


def equal(found, expected):
    return all(map(torch.equal, found, expected)) and len(found) == len(expected)


def row_gradients(encoder, frames):
    """Return the gradient of each row's path into the encoder, (T, P), and their sum's form."""
    encoder = copy.deepcopy(encoder)
    features = encoder(frames)
    (signal,) = torch.autograd.grad(head_like(features)(features), features, retain_graph=True)
    rows = []
    for t in range(len(frames)):
        only = torch.zeros_like(signal)
        only[t] = signal[t]
        parts = torch.autograd.grad(features, list(encoder.parameters()), only, retain_graph=True)
        rows.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(rows), signal


def flat(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients])


def lite0():
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = EfficientNetLite0(classes=8).eval()
    fold_batch_norms(network)
    return network.requires_grad_(True)


def resnet18():
    from torchvision.models import resnet18 as made

    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = made(num_classes=8).eval()
    fold_batch_norms(network)
    return network.requires_grad_(True)


def pictures(count, size=32, seed=4):
    return torch.randn(count, 3, size, size, generator=seeded(seed))
