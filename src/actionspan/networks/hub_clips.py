"""Networks of transformers that see clips, as modules from pixels to a vector a clip."""

from typing import Any

import torch
from torch import Tensor

from actionspan.errors import InputError
from actionspan.networks.hub_images import HfVectors, HubInputs, hf_model, pixels_of
from actionspan.networks.hub_source import FRAMES, LOCAL, Source, input_errors


class _ClipInputs(HubInputs):
    """Turns clips of bytes, (B, T, h, w, 3), into (B, T, 3, h', w') as the library does it."""

    def __init__(self, processor: Any, argument: str) -> None:
        super().__init__()
        self.processor, self.argument = processor, argument

    def prepared(self, pictures: list[Any]) -> Tensor:
        """Prepare clips (T, h, w, 3)."""
        how: dict[str, Any] = {"return_tensors": "pt"}
        if self.argument == "videos":
            how["do_sample_frames"] = False  # they are a clip already
        made = [self.processor(**{self.argument: list(clip)}, **how) for clip in pictures]
        return torch.stack([pixels_of(each).flatten(0, -4) for each in made])


def frames_of(config: Any) -> int | None:
    """Return how many frames a network sees at once; None where it sees images."""
    for part in (config, getattr(config, "vision_config", None)):
        for key in FRAMES:
            if isinstance(found := getattr(part, key, None), int):
                return found
    return None


def sees_clips(source: Source) -> bool:
    """Return whether a network sees clips, not single images.

    Raises:
        InputError: Its configuration cannot be read.
    """
    if source.package != "transformers":
        return False
    from transformers import AutoConfig

    with input_errors(source.name):
        return frames_of(AutoConfig.from_pretrained(source.model, **LOCAL)) is not None


def clip_network(
    source: Source, layer: int | None, pooling: str
) -> tuple["_ClipVectors", _ClipInputs, int]:
    """Return a model of clips with its weights, its own processor, and the frames of a clip."""
    from transformers import AutoImageProcessor, AutoVideoProcessor

    if source.package != "transformers":
        raise InputError(f"{source.name}: timm has no networks of clips; name one of transformers")
    model, missing = hf_model(source)
    frames = frames_of(model.config)
    if frames is None:
        raise InputError(f"{source.name}: sees single images; give it as rgb_encoder")
    preparing: Any = AutoVideoProcessor
    argument = "videos"
    try:
        processor = preparing.from_pretrained(source.model, **LOCAL)
    except ValueError:  # as of X-CLIP, which prepares frames as images
        preparing, argument = AutoImageProcessor, "images"
        processor = preparing.from_pretrained(source.model, **LOCAL)
    inputs = _ClipInputs(processor, argument)
    return _ClipVectors(model, source.name, layer, pooling, has_pooler=not missing), inputs, frames


class _ClipVectors(HfVectors):
    """(B, T, 3, h, w) pixels to (B, F).

    Of a model of videos and words, `auto` is the clip's vector in the space that both share.
    Otherwise it is the model's own pooled output, its class token, or the mean of all tokens.
    """

    stream, to_shared = "clip", "get_video_features"

    def __init__(
        self, model: Any, name: str, layer: int | None, pooling: str, *, has_pooler: bool
    ) -> None:
        super().__init__(model, name, layer, pooling, has_pooler=has_pooler)
        if self.shared and (layer is not None or pooling != "auto"):
            raise InputError(f"clip_layer, clip_pooling: {name} gives one vector a clip")
        self.has_token = getattr(model.config, "model_type", "") in ("timesformer", "vivit")
        if pooling == "cls" and not self.has_token:
            raise InputError(f"clip_pooling cls: {name} has no class token; give auto or mean")

    @property
    def vision(self) -> Any:
        """The part that sees."""
        return self.model

    def outputs(self, pixels: Tensor, **how: bool) -> Any:
        """Return the outputs of the model."""
        if hasattr(self.model, "get_vision_features"):  # V-JEPA: the encoder without its predictor
            return self.model(pixel_values_videos=pixels, skip_predictor=True, **how)
        return super().outputs(pixels, **how)

    def pooled(self, hidden: Tensor, pixels: Tensor) -> Tensor:  # noqa: ARG002
        """Return the vectors of the tokens (B, N, F) of a layer."""
        if self.has_token and self.pooling != "mean":
            return hidden[:, 0]
        return hidden[:, int(self.has_token) :].mean(dim=1)
