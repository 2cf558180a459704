"""A card that introduces a model where it is shared: README.md with YAML in front."""

import json
from pathlib import Path

from actionspan import __version__
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.storage.model_files import read_model

_TAGS = ("temporal-action-proposals", "temporal-action-localization", "video", "actionspan")
_PAGE = """\
---
{front}
---

# {title}

Temporal action proposals: where in time something happens in long, untrimmed videos. The model is
of actionspan {version}.

```bash
pip install 'actionspan[hub]'
actionspan propose VIDEO --model hf:ORG/NAME
```

`model.safetensors` holds tensors and JSON. Nothing of it is run or unpickled.

## Data

{data}

## The model

{figures}

## Limits

{limits}
"""


def card_of(model: Path, title: str, license_name: str, data: str) -> str:
    """Return the card of a model's file, of facts that the file has.

    Args:
        model: `model.safetensors`, or the folder that holds it.
        title: Of the card.
        license_name: As the hub names it, such as apache-2.0.
        data: A sentence about the videos that it learned from; empty: not stated.

    Raises:
        InputError: The file does not exist, or is not a complete model.
    """
    bundle, part = load_bundle(model), read_model(model)["temporal"]
    network, settings = part["model"].text(), part["settings"].value
    # 1. the head that the hub reads; JSON is YAML, too
    front = {
        "license": license_name,
        "library_name": "actionspan",
        "tags": [*_TAGS, network],
    }
    # 2. a table of facts
    rows = {
        "network": network,
        "parameters": f"{sum(each.numel() for each in bundle.temporal.parameters()):,}",
        **{name: settings[name] for name in ("members", "epochs", "seed") if name in settings},
        "sees": ", ".join(_seen(bundle)),
        "labels": ", ".join(bundle.classifier.labels) if bundle.classifier else "none",
        "events": "none" if bundle.density is None else "ranks" if bundle.ranks else "chances",
        "digest": part["digest"].text(),
    }
    if bundle.density is not None:
        low, high = bundle.density.lengths
        rows["events last"] = f"{low:.2g} s to {high:.3g} s"
    figures = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return _PAGE.format(
        front="\n".join(f"{name}: {json.dumps(value)}" for name, value in front.items()),
        title=title,
        version=__version__,
        data=data or "Not stated.",
        figures="\n".join(figures),
        limits="\n".join(f"- {line}" for line in _limits(bundle)),
    )


def _seen(bundle: Bundle) -> list[str]:
    """Return each stream with its network and width."""
    encoders = bundle.encoders
    networks = {
        "rgb": encoders.rgb_encoder,
        "flow": encoders.flow_encoder,
        "clip": encoders.clip_encoder,
    }
    found = [
        f"{stream} ({networks[stream]}, {width})" if stream in networks else f"{stream} ({width})"
        for stream, width in bundle.widths.items()
    ]
    return found or ["curves of motion"]


def _limits(bundle: Bundle) -> list[str]:
    lines = ["The file has no figure of accuracy: score it on videos that it has not seen."]
    lines += ["It expects footage like that it learned from; elsewhere its scores mean less."]
    if bundle.density is None:
        lines += ["Scores rank the proposals of one video; they are not chances."]
    elif bundle.ranks:
        lines += ["Events have ranks, because their chances would not hold for other footage."]
    else:
        lines += ["Chances of events hold for footage like that it learned from."]
    if bundle.classifier is None:
        lines += ["Events have no labels."]
    return lines
