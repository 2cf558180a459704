"""The state, other than the inputs, of a run of an encoder: random numbers and autocast.

A second run in backward restores both, as `torch.utils.checkpoint` does. Whether an encoder draws
random numbers is seen from its operators: the states of the generators are the whole process's, and
another thread may draw from them at the same time.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Generator, Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


class Surroundings:
    """The random number generators and the autocast state of the devices that an encoder uses.

    Only torch's own generators are known: an encoder that draws from elsewhere, or while another
    thread draws from the same generator, draws other numbers in its second run.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        devices = {tensor.device for tensor in tensors}
        self._devices = sorted((d for d in devices if d.type not in ("cpu", "meta")), key=str)
        types = ["cpu", *{device.type for device in self._devices}]
        self._autocast: list[dict[str, Any]] = [
            {
                "device_type": type_,
                "enabled": torch.is_autocast_enabled(type_),
                "dtype": torch.get_autocast_dtype(type_),
                # Backward may run inside an autocast block; its cache would keep a copy of each
                # weight of each second run until the block ends.
                "cache_enabled": False,
            }
            for type_ in types
            if torch.amp.is_autocast_available(type_)
        ]

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """Run under the autocast state that was there when this object was made."""
        with ExitStack() as stack:
            for settings in self._autocast:
                stack.enter_context(torch.autocast(**settings))
            yield

    def random(self) -> list[Tensor]:
        """Return the states of the global generators."""
        modules: list[Any] = [torch.get_device_module(device) for device in self._devices]
        states = [m.get_rng_state(d) for m, d in zip(modules, self._devices, strict=True)]
        return [torch.get_rng_state(), *states]

    def set_random(self, states: list[Tensor]) -> None:
        """Restore the states of the global generators."""
        torch.set_rng_state(states[0])
        for device, state in zip(self._devices, states[1:], strict=True):
            module: Any = torch.get_device_module(device)
            module.set_rng_state(state, device)

    @contextmanager
    def seeded(self, seed: int | None) -> Iterator[None]:
        """Run with generators that start from a seed, and leave them as they were; None: as is."""
        if seed is None:
            yield
            return
        before = self.random()
        try:
            torch.default_generator.manual_seed(seed)
            for device in self._devices:
                module: Any = torch.get_device_module(device)
                with module.device(device):
                    module.manual_seed(seed)
            yield
        finally:
            self.set_random(before)


def draw_seeds(count: int, generator: Generator | None) -> list[int]:
    """Draw seeds from a generator; None: torch's global one."""
    device = "cpu" if generator is None else generator.device
    seeds: list[int] = torch.randint(2**62, (count,), generator=generator, device=device).tolist()
    return seeds


_PROBABILITIES = ("p", "dropout", "dropout_p")
_SWITCHES = ("train", "training")

_Settings = tuple[bool | int | float, ...]
_known: WeakKeyDictionary[nn.Module, tuple[_Settings, bool]] = WeakKeyDictionary()


@contextmanager
def drawing(encoder: nn.Module) -> Iterator["Draws"]:
    """Find out whether a run of an encoder in the block draws from torch's global generators.

    The operators are only watched if the encoder was not run yet, or a number or flag of its
    modules (a training mode, a probability) has changed since its last run.

    Yields:
        The answer, once the block has ended.
    """
    settings = tuple(
        value
        for module in encoder.modules()
        for value in vars(module).values()
        if type(value) in (bool, int, float)
    )
    draws = Draws()  # type: ignore[no-untyped-call]
    before, known = _known.get(encoder, ((), False))
    if before == settings:
        draws.random = known
        yield draws
        return
    with draws:
        yield draws
    _known[encoder] = settings, draws.random


class Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Whether any operator of a block drew random numbers (`random`), in this thread alone."""

    random = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and look whether it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and _draws(func, args, kwargs):
            self.random = True
        return func(*args, **kwargs)


def _draws(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an operator that may draw does: attention may drop nothing, for example."""
    names = [argument.name for argument in func._schema.arguments]
    given = {a.name: a.default_value for a in func._schema.arguments}
    given |= dict(zip(names, args, strict=False)) | kwargs
    numbers = [given.get(name) for name in _PROBABILITIES]
    never = any(number == 0 for number in numbers if isinstance(number, int | float))
    off = any(given.get(name) is False for name in _SWITCHES)
    return not (never or off or given.get("generator") is not None)
