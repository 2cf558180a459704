r"""What encoders of timm and transformers cost: CPU seconds a frame, and memory.

    python benchmarks/encoders.py
    python benchmarks/encoders.py --gpu

Networks have their usual size and random weights, which cost what trained ones do, but are made
here. Each is measured in a process of its own on one thread, with frames of 256 × 340 and
preprocessing: pictures in three batches of 16, and three clips, one by one. Ours are computed by
PyTorch too, for comparison.

Prints a Markdown table: features, frames seen at once, millions of parameters, CPU milliseconds a
frame (median of three), and the most memory that the process took. With `--gpu` a row is a network
in one precision on a GPU: milliseconds of the clock a frame, from bytes in main memory to vectors
there (median of nine batches or clips), the most that PyTorch allocated, and the furthest that a
value is from float32's, as part of the largest.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

_SHAPE = (256, 340, 3)
_TIMES = 3


def transformers_model(
    family: str,
    processor: str,
    size: dict[str, int] | None = None,
    key: str = "rgb_encoder",
    **changes: Any,
) -> Callable[[Path], dict]:
    """Return what writes a model of a family into a folder."""

    def write(folder: Path) -> dict:
        import transformers

        config = transformers.CONFIG_MAPPING[family](**changes)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
        how = {"size": size} if size else {}
        getattr(transformers, processor)(**how).save_pretrained(folder)
        return {key: str(folder)}

    return write


def clip_model(family: str, processor: str, **changes: Any) -> Callable[[Path], dict]:
    """Return what writes a model of clips into a folder."""
    return transformers_model(family, processor, key="clip_encoder", **changes)


def timm_model(name: str) -> Callable[[Path], dict]:
    """Return what writes a model of timm into a folder."""

    def write(folder: Path) -> dict:
        import timm
        from safetensors.torch import save_file

        model = timm.create_model(name, pretrained=False, num_classes=0)
        save_file(model.state_dict(), folder / "weights.safetensors")
        return {"rgb_encoder": f"timm:{name}", "rgb_weights": folder / "weights.safetensors"}

    return write


DINO = {"hidden_size": 384, "num_attention_heads": 6, "patch_size": 14}
SIGLIP = {"vision_config": {"image_size": 224, "patch_size": 16}}
MODELS: dict[str, Callable[[Path], dict]] = {
    "efficientnet_lite0 (default)": lambda folder: {"runtime": "eager"},
    "CLIP ViT-B/32": transformers_model("clip", "CLIPImageProcessor"),
    "SigLIP B/16": transformers_model("siglip", "SiglipImageProcessor", **SIGLIP),
    "DINOv2 S/14": transformers_model("dinov2", "BitImageProcessor", **DINO),
    "ViT B/16": transformers_model("vit", "ViTImageProcessor"),
    "ConvNeXt T": transformers_model("convnext", "ConvNextImageProcessor", {"shortest_edge": 224}),
    "timm:convnext_tiny": timm_model("convnext_tiny"),
    "timm:vit_small_patch14_dinov2": timm_model("vit_small_patch14_dinov2"),
    "timm:tf_efficientnet_lite2": timm_model("tf_efficientnet_lite2"),
    "VideoMAE B/16": clip_model("videomae", "VideoMAEVideoProcessor"),
    "TimeSformer B/16": clip_model("timesformer", "TimesformerVideoProcessor"),
    "X-CLIP B/32": clip_model("xclip", "CLIPImageProcessor"),
    "V-JEPA 2 L/16": clip_model("vjepa2", "VJEPA2VideoProcessor"),
}


def measure(settings: dict) -> tuple[int, int, float, float, float]:
    """Return features, frames at once, millions of parameters, ms a frame, and megabytes."""
    torch.set_num_threads(1)
    encoder, seen, run = prepared("cpu", "float32", settings)
    taken = []
    for _ in range(_TIMES):
        started = time.process_time()
        run()
        taken.append((time.process_time() - started) / _frames(encoder, seen))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    memory = int(status.split("VmHWM:")[1].split()[0]) / 1024  # getrusage has the parent's too
    return encoder.features, seen, parameters(encoder), 1000 * float(np.median(taken)), memory


def measure_gpu(settings: dict) -> list[tuple[str, float, float, float]]:
    """Return a row a precision: it, ms a frame, megabytes on the GPU, difference from float32."""
    rows = []
    exact = None
    for precision in ("float32", "float16", "bfloat16"):
        encoder, seen, run = prepared("cuda", precision, settings)
        torch.cuda.reset_peak_memory_stats()
        found = [run() for _ in range(3)][-1]
        taken = []
        for _ in range(9):
            started = time.perf_counter()
            run()
            taken.append((time.perf_counter() - started) / _frames(encoder, seen))
        exact = found if exact is None else exact
        away = float(np.abs(found - exact).max() / np.abs(exact).max())
        memory = torch.cuda.max_memory_allocated() / 2**20
        rows.append((precision, 1000 * float(np.median(taken)), memory, away))
        del encoder, run
        torch.cuda.empty_cache()
    return rows


def prepared(device: str, precision: str, settings: dict) -> tuple[Any, int, Callable[[], Any]]:
    """Return an encoder, the frames it sees at once, and what encodes a batch or a clip."""
    from actionspan.features.clips import ClipEncoder
    from actionspan.features.encoders import Encoder
    from actionspan.features.settings import EncoderSettings

    chosen: Any = EncoderSettings(device=device, precision=precision, **settings)
    draw = np.random.default_rng(0).integers
    if chosen.clip_encoder == "none":
        image = Encoder(chosen.rgb_encoder, chosen.rgb_weights, chosen, 3)
        frames = draw(0, 256, (chosen.batch_size, *_SHAPE), np.uint8)
        return image, 1, partial(image.batch, frames)
    clip = ClipEncoder(chosen)
    frames = draw(0, 256, (clip.windows.length, *_SHAPE), np.uint8)
    return clip, len(frames), partial(clip.window, frames, rows=np.arange(len(frames)))


def _frames(encoder: Any, seen: int) -> int:
    """Return how many frames a run takes."""
    return encoder.settings.batch_size if seen == 1 else seen


def parameters(encoder: Any) -> float:
    """Return the millions of parameters of an encoder's network."""
    return sum(each.numel() for each in encoder.run.network.parameters()) / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on a GPU, in each precision")
    parser.add_argument("--models", nargs="+", default=[""], help="words of their names")
    arguments = parser.parse_args()
    gpu = arguments.gpu
    names = "precision | ms a frame | allocated, MB | difference"
    if not gpu:
        names = "features | frames | million parameters | CPU ms a frame | memory, MB"
    print(f"| encoder | {names} |\n|---|" + "---:|" * (names.count("|") + 1))
    context = get_context("spawn")
    for name, write in MODELS.items():
        if not any(word in name for word in arguments.models):
            continue
        with tempfile.TemporaryDirectory() as folder:
            settings = write(Path(folder))
            with context.Pool(1) as pool:
                if gpu:
                    for kind, ms, memory, away in pool.apply(measure_gpu, (settings,)):
                        print(f"| {name} | {kind} | {ms:.2f} | {memory:,.0f} | {away:.1e} |")
                    sys.stdout.flush()
                    continue
                found = pool.apply(measure, (settings,))
        cells = f"{found[0]:,} | {found[1]} | {found[2]:.1f} | {found[3]:.0f} | {found[4]:,.0f}"
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
