"""Steps of a recognition network: ours in bfloat16 against eager float32 as torch has it.

    python benchmarks/recognition_step.py --networks resnet50 resnet152 --batch 64

A row is a network on random pictures: samples a second of training steps (forward, backward, Adam)
with float32 weights in torch's own layout of memory, with `precision: bfloat16` in channels-last
layout as `actionspan recognition train` has it, and with float32 in that layout. The three take
turns; a figure is the median over the rounds, a ratio the median of neighbouring ones.
"""

import argparse
import statistics
import time

import torch
from torch.nn import functional

from actionspan.networks.architecture import Inputs, architecture
from actionspan.networks.runtime import choose_device
from actionspan.recognition.settings import RecognitionSettings
from actionspan.recognition.task import autocast, build_classifier

WAYS = {
    "eager_float32": ("float32", torch.contiguous_format),
    "bfloat16": ("bfloat16", torch.channels_last),
    "float32": ("float32", torch.channels_last),
}


class Steps:
    """Training steps of one network in one way."""

    def __init__(self, arguments: argparse.Namespace, network: str, way: str) -> None:
        precision, self.layout = WAYS[way]
        self.settings = RecognitionSettings(network=network, pretrained=False, precision=precision)
        self.device = choose_device(arguments.device)
        channels = 3 if arguments.stream == "rgb" else 20
        model = build_classifier(self.settings, channels, arguments.classes, None)
        self.model = model.to(self.device, memory_format=self.layout).train()
        self.inputs = Inputs(architecture(network), channels, self.device)
        self.optimiser = torch.optim.Adam(self.model.parameters(), 1e-4)
        size = self.settings.input_size
        self.pictures = torch.randint(256, (arguments.batch, size, size, channels)).byte()
        self.labels = torch.randint(arguments.classes, (arguments.batch,)).to(self.device)

    def rate(self, count: int) -> float:
        """Return the samples a second of `count` steps."""
        self._wait()
        begun = time.perf_counter()
        for _ in range(count):
            self.optimiser.zero_grad()
            with autocast(self.settings, self.device):
                pictures = self.inputs(self.pictures).contiguous(memory_format=self.layout)
                scores = self.model(pictures)
            functional.cross_entropy(scores.float(), self.labels).backward()
            self.optimiser.step()
        self._wait()
        return count * len(self.labels) / (time.perf_counter() - begun)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Time the steps and print a row a network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=["resnet50", "resnet152"])
    parser.add_argument("--stream", choices=("rgb", "flow"), default="rgb")
    parser.add_argument("--classes", type=int, default=101)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    arguments = parser.parse_args()
    print("network", *WAYS, "bfloat16_ratio", "float32_ratio", sep="\t", flush=True)
    for network in arguments.networks:
        ways = {way: Steps(arguments, network, way) for way in WAYS}
        for steps in ways.values():
            steps.rate(2)
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.rounds):
            for way, steps in ways.items():
                found[way].append(steps.rate(arguments.steps))
        ratios = [
            statistics.median(
                ours / eager for ours, eager in zip(found[way], found["eager_float32"], strict=True)
            )
            for way in ("bfloat16", "float32")
        ]
        medians = [f"{statistics.median(rates):.1f}" for rates in found.values()]
        print(network, *medians, *(f"{ratio:.2f}" for ratio in ratios), sep="\t", flush=True)


if __name__ == "__main__":
    main()
