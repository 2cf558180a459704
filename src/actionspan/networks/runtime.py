"""The runtimes of a network, and its device: PyTorch, or OpenVINO, faster on CPUs and optional.

Both take bytes as `architecture.Inputs` does; OpenVINO compiles its arithmetic too.
Results of OpenVINO do not depend on the rest of a batch, nor on its length, to the bit.
"""

import os
import sys
import warnings
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32, UInt8
from actionspan.errors import InputError, counted
from actionspan.jobs import launcher
from actionspan.networks.architecture import Inputs
from actionspan.networks.compiled import Kept, network_digest

Runtime = Literal["eager", "openvino"]
INSTALL = "pip install 'actionspan[fast]'"

_IMAGES = 4  # at once, of each thread: with more it is slower and needs more memory


class ToPixels(Protocol):
    """The preprocessing from (B, …, C) bytes to a network's input, on its device."""

    device: torch.device

    def __call__(self, batch: Tensor, /) -> Tensor:
        """Convert a batch."""


class Runner(Protocol):
    """A network on one runtime: (B, …, C) uint8 to float32 vectors."""

    made_by: str  # the runtime, for people to read

    def __call__(self, batch: UInt8, /) -> Float32:
        """Compute a batch."""


class NotConverted(Exception):
    """OpenVINO does not take a network, for the reason in one line."""


@lru_cache(maxsize=1)
def find_openvino() -> ModuleType | None:
    """Return the package openvino, None where it is not installed or does not load."""
    # Importing it would report the import to its makers if its telemetry package is there.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    try:
        import openvino
        import openvino.frontend.pytorch.ts_decoder
    except (ImportError, OSError):
        return None
    found: ModuleType = openvino
    return found


_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def openvino_computes(precision: str) -> bool:
    """Return whether OpenVINO is here and computes in this precision on this CPU."""
    found = find_openvino()
    if found is None or precision != "bfloat16":
        return found is not None and precision == "float32"
    return "BF16" in found.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def openvino_version() -> str:
    """Return the name of the runtime with its version, such as `openvino 2026.4.1`."""
    found = find_openvino()
    assert found is not None
    return f"openvino {found.__version__.split('-')[0]}"


class Eager:
    """PyTorch, module by module: the reference.

    The network is in evaluation mode, and is moved to the device of `inputs`; `precision` is the
    type of its arithmetic.
    """

    made_by = "eager"

    def __init__(self, network: nn.Module, inputs: ToPixels, precision: str) -> None:
        layouts = {4: torch.channels_last, 5: torch.channels_last_3d}
        axes = {values.ndim for values in network.state_dict().values()} & layouts.keys()
        # networks with both, such as V-JEPA's, can have neither
        layout = layouts[min(axes)] if len(axes) == 1 else torch.preserve_format
        self.network = network.to(inputs.device).to(memory_format=layout)  # type: ignore[call-overload]
        self.inputs = inputs
        self.dtype = getattr(torch, precision) if precision != "float32" else None

    @torch.inference_mode()
    def __call__(self, batch: UInt8) -> Float32:
        """Compute the network's vectors of (B, …, C) bytes."""
        images = self.inputs(torch.from_numpy(batch))
        with torch.autocast(self.inputs.device.type, dtype=self.dtype, enabled=bool(self.dtype)):
            vectors: Tensor = self.network(images)
        return np.asarray(vectors.float().cpu().numpy(), np.float32)


class OpenVino:
    """OpenVINO on the CPU, with as many threads as torch has when it is called.

    The network is one of images, in evaluation mode, on the CPU, its parameters without gradients,
    and does not change afterwards. `size` is the side of the images, for which padding is made,
    `precision` float32 or, where `openvino_computes` it, bfloat16. The network is converted only if
    the user's cache does not hold the compiled network.

    Raises:
        NotConverted: OpenVINO does not take the network.
    """

    def __init__(
        self, network: nn.Module, inputs: Inputs, size: int, precision: str = "float32"
    ) -> None:
        self.made_by = openvino_version()
        self.precision = precision
        image = size, size, len(inputs.mean)
        self._digest = network_digest(network, inputs, image)
        self._model = cache(partial(_converted, network, inputs, image))  # converted once, if ever
        threads = torch.get_num_threads()
        self._ready = threads, self._compiled(threads)  # a request for this number of threads

    def __call__(self, batch: UInt8) -> Float32:
        """Compute the network's vectors of (B, size, size, C) bytes."""
        threads = torch.get_num_threads()
        if self._ready[0] != threads:
            self._ready = threads, self._compiled(threads)
        request, size = self._ready[1], _IMAGES * threads
        parts = [batch[start : start + size] for start in range(0, len(batch), size)]
        return np.concatenate([request.infer([part], share_inputs=True)[0] for part in parts])

    def _compiled(self, threads: int) -> Any:
        """Return a request that computes the network on some threads."""
        openvino = find_openvino()
        assert openvino is not None
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": _HINTS[self.precision],
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # jobs side by side would share a core
        }
        kept = Kept(openvino, self._digest, settings)
        compiled = kept.read()
        if compiled is None:
            compiled = openvino.Core().compile_model(self._model(), "CPU", settings)
            kept.write(compiled)
        return compiled.create_infer_request()


def _converted(network: nn.Module, inputs: Inputs, image: tuple[int, int, int]) -> Any:
    """Return a network as a model of OpenVINO of any number of images, (B, size, size, C) bytes."""
    openvino = find_openvino()
    assert openvino is not None
    # Not `openvino.convert_model`, which imports far more and takes seconds.
    frontend = openvino.frontend.FrontEndManager().load_by_framework("pytorch")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that lengths become constants, as they shall
            batch = torch.zeros(2, *image, dtype=torch.uint8)
            # A function has its weights as constants; a module would be scripted layer by layer.
            trace: Any = torch.jit.trace
            traced = trace(lambda seen: network(inputs(seen)), (batch,), check_trace=False)
        decoder = openvino.frontend.pytorch.ts_decoder.TorchScriptPythonDecoder(traced)
        model = frontend.convert(frontend.load(decoder))  # the decoder must live until here
        (seen,) = model.get_parameters()
        seen.set_element_type(openvino.Type.u8)
        seen.set_partial_shape(openvino.PartialShape([-1, *image]))
        model.validate_nodes_and_infer_types()
    except Exception as error:  # of many kinds, none of which is the caller's fault
        raise NotConverted(" ".join(str(error).split())) from error
    return model


# Set where SLURM gives each rank its own GPUs; it then sees no others.
_BOUND = ("SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK")


def choose_device(wanted: str) -> torch.device:
    """Return the device of a setting: `auto` is a CUDA device where there is one.

    The ranks of a node are spread over its GPUs, and a rank's GPU becomes torch's current one.

    Raises:
        InputError: A CUDA device is wanted and there is none.
    """
    has_cuda = torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise InputError("device is cuda, but no CUDA device is visible; give auto or cpu")
    if not has_cuda or wanted == "cpu":
        return torch.device("cpu")
    rank, ranks = launcher.local_rank()
    if ranks == 1:
        return torch.device("cuda")
    gpus = torch.cuda.device_count()
    if ranks > gpus and rank == 0 and not any(name in os.environ for name in _BOUND):
        _say_crowded(ranks, gpus)
    device = torch.device("cuda", rank % gpus)
    torch.cuda.set_device(device)
    return device


@cache
def _say_crowded(ranks: int, gpus: int) -> None:
    """Print once that ranks share GPUs."""
    line = f"{ranks} ranks share {counted(gpus, 'GPU')} on this machine"
    print(f"{line}; more than a rank a GPU are no faster", file=sys.stderr, flush=True)
