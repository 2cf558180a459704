"""Networks of timm and transformers as modules from pixels to vectors."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.networks.hub_source import LOCAL, Source, size_limit


class HubInputs:
    """Turns batches of bytes into batches of floats by the preprocessing of the library."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def __call__(self, batch: Tensor) -> Tensor:
        """Convert (B, …, h, w, 3) uint8 RGB to (B, …, 3, h', w') float32."""
        return self.prepared(list(batch.numpy())).to(self.device)

    @abstractmethod
    def prepared(self, pictures: list[Any]) -> Tensor:
        """Prepare (h, w, 3) images, or clips of them."""


class _TimmInputs(HubInputs):
    def __init__(self, transform: Any) -> None:
        super().__init__()
        self.transform = transform

    def prepared(self, pictures: list[Any]) -> Tensor:
        return torch.stack([self.transform(Image.fromarray(each)) for each in pictures])


class _HfInputs(HubInputs):
    def __init__(self, processor: Any) -> None:
        super().__init__()
        self.processor = processor

    def prepared(self, pictures: list[Any]) -> Tensor:
        return pixels_of(self.processor(images=pictures, return_tensors="pt"))


def pixels_of(made: Mapping[str, Tensor]) -> Tensor:
    """Return the pixels that a processor of transformers made of images or of a clip."""
    if set(made) not in ({"pixel_values"}, {"pixel_values_videos"}):
        raise InputError(f"takes {', '.join(sorted(made))}; pixels alone can be given")
    (pixels,) = made.values()
    return pixels.float()


def timm_network(
    source: Source, layer: int | None, pooling: str
) -> tuple["_TimmVectors", HubInputs]:
    """Return a model of timm with its weights, and its own transform of evaluation."""
    import timm.data

    data: Any = timm.data
    model = timm_model(source)
    transform = data.create_transform(**data.resolve_model_data_config(model), is_training=False)
    return _TimmVectors(model, source.name, layer, pooling), _TimmInputs(transform)


def timm_model(source: Source) -> Any:
    """Return a model of timm with its weights and without a classifier."""
    import timm

    if len(source.weights) > 1:
        raise InputError(f"{source.name}: weights in {len(source.weights)} files; timm takes one")
    is_folder = Path(source.model).is_dir()
    name = f"local-dir:{source.model}" if is_folder else source.model
    with size_limit(source.weights, source.name):
        timm.create_model(name, pretrained=False, num_classes=0)
    with _loading() as loaded:
        model = timm.create_model(
            name,
            pretrained=True,
            pretrained_cfg_overlay={"file": str(source.weights[0]), "source": ""},
            num_classes=0,
        )
    _check_whole(source, [key for each in loaded for key in each.missing_keys])
    return model


@contextmanager
def _loading() -> Iterator[list[Any]]:
    """Note the result of each `load_state_dict` of the block, as timm ignores missing weights."""
    loaded: list[Any] = []
    load = nn.Module.load_state_dict

    def noting(module: nn.Module, *args: Any, **how: Any) -> Any:
        loaded.append(load(module, *args, **how))
        return loaded[-1]

    nn.Module.load_state_dict = noting  # type: ignore[method-assign, assignment]
    try:
        yield loaded
    finally:
        nn.Module.load_state_dict = load  # type: ignore[method-assign]
    if not loaded:
        raise InputError("no weights were loaded")


def _check_whole(source: Source, missing: list[str]) -> None:
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{source.name}: its weights lack {min(missing)}{more}")


def hf_network(source: Source, layer: int | None, pooling: str) -> tuple["HfVectors", HubInputs]:
    """Return a model of transformers with its weights, and its own image processor."""
    from transformers import AutoImageProcessor

    preparing: Any = AutoImageProcessor
    processor = preparing.from_pretrained(source.model, **LOCAL)
    model, missing = hf_model(source)
    vectors = HfVectors(model, source.name, layer, pooling, has_pooler=not missing)
    return vectors, _HfInputs(processor)


def hf_model(source: Source) -> tuple[Any, list[str]]:
    """Return a model of transformers in float32, and which weights of its pooler are missing.

    It has no pooler then.
    """
    from transformers import AutoConfig, AutoModel

    building: Any = AutoModel
    with size_limit(source.weights, source.name):
        building.from_config(AutoConfig.from_pretrained(source.model, **LOCAL))
    model, about = AutoModel.from_pretrained(
        source.model, **LOCAL, output_loading_info=True, dtype=torch.float32
    )
    missing = list(about["missing_keys"])
    _check_whole(source, [name for name in missing if not name.startswith("pooler.")])
    if missing:
        model.pooler = None
    return model, missing


class _TimmVectors(nn.Module):
    """(B, 3, h, w) pixels to (B, F): as the model pools, or its first token, or a mean."""

    def __init__(self, model: Any, name: str, layer: int | None, pooling: str) -> None:
        super().__init__()
        self.model, self.layer, self.pooling = model, layer, pooling
        self.prefix = int(getattr(model, "num_prefix_tokens", 0))
        if pooling == "cls" and not (self.prefix and getattr(model, "cls_token", None) is not None):
            raise InputError(f"rgb_pooling cls: {name} has no class token; give auto or mean")
        if layer is not None and not hasattr(model, "forward_intermediates"):
            raise InputError(f"rgb_layer {layer}: timm cannot give the layers of {name}")

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the vectors."""
        vectors: Tensor
        if self.layer is not None:
            return self._of_layer(pixels)
        if self.pooling == "auto":
            vectors = self.model(pixels)
            return vectors
        found: Tensor = self.model.forward_features(pixels)
        if self.pooling == "cls":
            return found[:, 0]
        if found.ndim == 3:
            return found[:, self.prefix :].mean(dim=1)
        last = getattr(self.model, "output_fmt", "NCHW") == "NHWC"
        return found.mean(dim=(1, 2) if last else (2, 3))

    def _of_layer(self, pixels: Tensor) -> Tensor:
        tokens = {"return_prefix_tokens": True} if self.pooling == "cls" else {}
        (found,) = self.model.forward_intermediates(
            pixels, indices=[self.layer], norm=True, intermediates_only=True, **tokens
        )
        vectors: Tensor = found[1][:, 0] if self.pooling == "cls" else found.mean(dim=(2, 3))
        return vectors


class HfVectors(nn.Module):
    """(B, 3, h, w) pixels to (B, F); `hub_clips` has the same of clips.

    Of a model of images and words, `auto` is the image's vector in the space that both share.
    Otherwise it is the model's own pooled output, or the mean of the patches.
    """

    stream = "rgb"  # in the names of its settings
    to_shared = "get_image_features"  # the method that gives vectors in the space of words

    def __init__(
        self, model: Any, name: str, layer: int | None, pooling: str, *, has_pooler: bool
    ) -> None:
        super().__init__()
        self.model, self.layer, self.pooling = model, layer, pooling
        self.shared, self.has_pooler = hasattr(model, self.to_shared), has_pooler
        if self.shared:
            model.text_model = None  # the words' half is not needed
        layers = getattr(self.vision.config, "num_hidden_layers", None)
        if layer is not None and layers is not None and not -layers <= layer <= layers:
            raise InputError(f"{self.stream}_layer {layer}: {name} has {layers}")

    @property
    def vision(self) -> Any:
        """The part that sees."""
        return self.model.vision_model if self.shared else self.model

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the vectors."""
        vectors: Tensor
        deep = self.layer is not None
        as_model_does = not deep and self.pooling == "auto"
        if as_model_does and self.shared:
            vectors = getattr(self.model, self.to_shared)(pixel_values=pixels).pooler_output
            return vectors
        outputs = self.outputs(pixels, output_hidden_states=deep)
        if as_model_does and self.has_pooler and outputs.get("pooler_output") is not None:
            vectors = outputs.pooler_output.flatten(1)
            return vectors
        hidden = outputs.hidden_states[self.layer] if deep else outputs.last_hidden_state
        return self.pooled(hidden, pixels)

    def outputs(self, pixels: Tensor, **how: bool) -> Any:
        """Return the outputs of the model."""
        return self.vision(pixel_values=pixels, **how)

    def pooled(self, hidden: Tensor, pixels: Tensor) -> Tensor:
        """Return the vectors of the maps (B, F, h, w) or tokens (B, N, F) of a layer."""
        if hidden.ndim == 4:
            return hidden.mean(dim=(2, 3))
        # tokens that are not patches come first
        first, patch = 0, getattr(self.vision.config, "patch_size", None)
        if patch:
            height, width = pixels.shape[-2:]
            first = hidden.shape[1] - (height // patch) * (width // patch)
        if self.pooling != "cls":
            return hidden[:, max(first, 0) :].mean(dim=1)
        if first < 1:
            raise InputError("rgb_pooling cls: the encoder has no class token; give auto or mean")
        return hidden[:, 0]
