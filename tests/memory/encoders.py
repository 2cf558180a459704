"""Encoders and videos of the tests, and how a gradient is taken."""

import copy
from typing import get_args

import torch
from torch import nn

from actionspan.memory.estimator import GradientWeight
from actionspan.memory.sampling import BY_GRADIENT, Sampler
from actionspan.memory.ways import make_way
from actionspan.networks.architecture import architecture
from actionspan.networks.weights import fold_batch_norms

CHANNELS = 3
SAMPLERS = get_args(Sampler)
SPLIT_SAMPLERS = tuple(each for each in SAMPLERS if each not in BY_GRADIENT)
EXECUTIONS = ("split", "replay")
WAYS = [(sampler, "replay") for sampler in SAMPLERS] + [(s, "split") for s in SPLIT_SAMPLERS]
WEIGHTS = get_args(GradientWeight)


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

    def __init__(self, encoder, frames, way="sbp", generator=None, **how):
        self.encoder = copy.deepcopy(encoder)
        module = make_way(way, self.encoder, **how)
        features = module(frames, generator=seeded() if generator is None else generator)
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


class TwoStreams(nn.Module):
    """An encoder of two inputs a row."""

    def __init__(self):
        super().__init__()
        self.first, self.second = tiny(1), tiny(2)

    def forward(self, first, second):
        return self.first(first) * self.second(second)


class Pictures:
    """Frames of two streams that are made when they are asked for."""

    def __init__(self, count):
        self.rows, self.asked = video(count), []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, rows):
        self.asked.append(rows.tolist())
        return self.rows[rows], self.rows[rows].cos()


def dropping(rate=0.5):
    """The parts of `tiny` with dropout after the first and the second."""
    parts = tiny()
    return nn.Sequential(parts[0], nn.Dropout(rate), parts[1], nn.Dropout(rate), parts[2])


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


def image_network(name, *, folded=True, classes=8):
    """An EfficientNet-Lite0 or a ResNet of random weights in evaluation mode, which learns."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = architecture(name).build(3, classes).eval()
    if folded:
        fold_batch_norms(network)
    return network.requires_grad_(True)


def lite0():
    return image_network("efficientnet_lite0")


def resnet18():
    return image_network("resnet18")


def pictures(count, size=32, seed=4):
    return torch.randn(count, 3, size, size, generator=seeded(seed))
