"""Networks as OpenVINO compiles them, kept in the user's cache.

To convert and compile one takes most of a second, to read it a twentieth. It is kept for all that
it depends on: weights, layers, code, versions, processor and threads.
"""

import hashlib
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from actionspan.networks.architecture import Inputs
from actionspan.storage.cache import read_cached, write_cached

# Their layers are known by a version, or by their text; torchvision asks for one version of torch.
_KNOWN = ("actionspan", "torch", "torchvision")
_PLAIN = (bool, int, float, str, tuple)


def network_digest(network: nn.Module, inputs: Inputs, image: tuple[int, int, int]) -> str | None:
    """Return a digest of a network of images (H, W, C), None of one with layers of a plug-in.

    The output of a plug-in's layers may change with code that is not known here.
    """
    found = hashlib.sha256()
    for name, module in network.named_modules():
        kind = type(module)
        if kind.__module__.partition(".")[0] not in _KNOWN:
            return None
        plain = sorted(each for each in vars(module).items() if isinstance(each[1], _PLAIN))
        found.update(repr((name, kind.__module__, kind.__qualname__, plain)).encode())
    given = {"mean": inputs.mean, "std": inputs.std}
    held = network.state_dict() | dict(network.named_buffers())
    for name, values in (given | held).items():
        found.update(repr((name, values.dtype, values.shape)).encode())
        found.update(values.numpy().tobytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    found.update(repr((image, inputs.bgr, torch.__version__)).encode())
    return found.hexdigest()


class Kept:
    """The cached network that OpenVINO compiled with these settings.

    `network` is its digest; of one without, nothing is kept.
    """

    def __init__(self, openvino: ModuleType, network: str | None, settings: dict[str, Any]) -> None:
        self._core, self._settings, self._name = openvino.Core(), settings, ""
        if network is not None:
            processor = self._core.get_property("CPU", "FULL_DEVICE_NAME")
            instructions = torch.backends.cpu.get_cpu_capability()
            known = (network, openvino.__version__, processor, instructions, settings)
            self._name = hashlib.sha256(repr(known).encode()).hexdigest()

    def read(self) -> Any | None:
        """Return the compiled network, None if it is not there."""
        kept = read_cached(self._name) if self._name else None
        try:
            return None if kept is None else self._core.import_model(kept, "CPU", self._settings)
        except RuntimeError:  # OpenVINO refuses the file, which is whole: it is made again
            return None

    def write(self, compiled: Any) -> None:
        """Keep the network that OpenVINO compiled with the settings."""
        if self._name:
            write_cached(self._name, compiled.export_model().getvalue())
