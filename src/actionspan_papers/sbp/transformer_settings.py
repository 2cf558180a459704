"""The knobs of paper 004's experiments on transformers: tables 1 to 3, figures 1 and 4."""

from dataclasses import dataclass

from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(Checked):
    """The rendered clips, the transformer, and how it is trained."""

    training_clips: int = option(720, "clips that are trained on", least=12)
    validation_clips: int = option(300, "clips that are scored", least=12)
    frames: int = option(8, "of a clip, evenly over 2.4 seconds", least=4, most=64)
    side: int = option(48, "side of their pictures, a multiple of 16", least=16, unit="pixels")
    width: int = option(32, "of a node, a multiple of 8", least=8)
    layers: int = option(6, "of the transformer", least=3)
    top_layers: int = option(2, "of these that always keep all backward paths", least=1)
    keep_ratio: float = option(
        0.25, "part of the backward paths that SBP keeps, of the frames that frame dropout keeps",
        above=0, most=1,
    )  # fmt: skip
    epochs: int = option(10, "of each training", least=1)
    batch_size: int = option(16, "clips in a step", least=1)
    learning_rate: float = option(0.003, "highest step size of AdamW", above=0)
    margin: float = option(
        5.0, "difference up to which two ways are equivalent", above=0, unit="points of top-1"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, unit in (("side", 16), ("width", 8)):
            if getattr(self, name) % unit:
                raise ValueError(f"{name} {getattr(self, name)}: must be a multiple of {unit}")
        if self.top_layers >= self.layers:
            raise ValueError(f"top_layers {self.top_layers}: fewer than the {self.layers} layers")
