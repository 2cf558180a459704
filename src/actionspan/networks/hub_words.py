"""Words as vectors in the space that a model of transformers shares with images or clips."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from actionspan.arrays import Float32
from actionspan.errors import InputError
from actionspan.networks.hub import encoder_digest
from actionspan.networks.hub_source import LOCAL, Source, input_errors

_TOKENIZERS = ("*token*", "vocab*", "merges*", "*.model", "added_tokens.json")


class Texts(NamedTuple):
    """Texts in the space that a model shares with images or clips."""

    vectors: Float32  # (N, D) unit vectors
    scale: float | None  # of the cosines, before softmax; None: the model has none


def text_vectors(source: Source, texts: Sequence[str]) -> Texts:
    """Return the vectors of texts.

    Raises:
        InputError: The model knows no words, or its tokenizer is not here.
    """
    unknown = "knows no words; give a model of images and words, such as CLIP or SigLIP"
    if source.package != "transformers":
        raise InputError(f"{source.name}: {unknown}")
    from transformers import AutoModel, AutoTokenizer

    with input_errors(source.name):
        model: Any = AutoModel.from_pretrained(source.model, **LOCAL, dtype=torch.float32).eval()
        if not hasattr(model, "get_text_features"):
            raise InputError(f"{source.name}: {unknown}")
        if not tokenizer_files(source):  # transformers would make one that knows no word
            raise InputError(f"{source.name}: its tokenizer is not here (tokenizer.json)")
        tokenizer: Any = AutoTokenizer.from_pretrained(source.model, **LOCAL)
        longest = model.config.text_config.max_position_embeddings
        # SigLIP's text model was trained on texts of full length, and reads its last token
        padded = model.config.model_type.startswith("siglip")
        tokens = tokenizer(
            list(texts),
            padding="max_length" if padded else True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        )
        with torch.inference_mode():
            vectors: Tensor = model.get_text_features(**tokens).pooler_output
            scale = float(model.logit_scale.exp()) if hasattr(model, "logit_scale") else None
    return Texts(torch.nn.functional.normalize(vectors).numpy(), scale)


def words_digest(source: Source) -> str:
    """Return a digest of the tokenizer, which `encoder_digest` does not cover."""
    return encoder_digest(source._replace(weights=tuple(tokenizer_files(source)), prepares=""))


def tokenizer_files(source: Source) -> list[Path]:
    """Return the files of a model's tokenizer."""
    found = {path for kind in _TOKENIZERS for path in Path(source.model).glob(kind)}
    return sorted(path for path in found if path.is_file())
