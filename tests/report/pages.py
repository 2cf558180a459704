"""Pages for the tests, and a film that their videos play."""

import io
import math
from pathlib import Path
from typing import Any

import av
import numpy as np

from actionspan.annotations.tables import Instance
from actionspan.proposals.segments import Row
from actionspan.report.content import Chart, Page, PageVideo, Series, Table

SECONDS, RATE = 8.0, 25


def row(start: float, end: float, score: float, label: str = "") -> Row:
    return {"segment": [start, end], "score": score, "label": label}


TRUTH = (
    Instance(start=1.0, end=2.52, label="fall"),
    Instance(start=4.4, end=6.0, label="sit down"),
)
EVENTS = (
    row(4.48, 6.08, 0.84, "sit down"),
    row(1.2, 2.6, 0.61, "fall"),
    row(6.6, 7.4, 0.22, "jump"),
)


def encoded(
    target, frames: list[np.ndarray], codec: str, pixels: str, rate: int = 1, **more
) -> None:
    """Encode pictures into a file."""
    with av.open(target, "w", format=more.get("format")) as container:
        stream: Any = container.add_stream(codec, rate=rate, options=more.get("options", {}))
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = pixels
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def film(path: Path) -> Path:
    """Write an H.264 film of 8 s with a bar that moves to the right."""
    count = round(SECONDS * RATE)
    pictures = [picture_at(number / count, 160, 120) for number in range(count)]
    encoded(str(path), pictures, "libx264", "yuv420p", RATE, options={"g": str(RATE)})
    return path


def picture_at(share: float, width: int, height: int) -> np.ndarray:
    rows = np.linspace(0.25, 0.55, height)[:, None, None]
    bar = np.exp(-(((np.linspace(0, 1, width)[None, :, None] - share) / 0.04) ** 2))
    return (255 * np.clip(rows * np.array([0.5, 0.7, 0.9]) + bar, 0, 1)).astype(np.uint8)


def thumbnail(share: float) -> bytes:
    file = io.BytesIO()
    encoded(file, [picture_at(share, 96, 54)], "mjpeg", "yuvj420p", format="mjpeg")
    return file.getvalue()


def proposals(count: int, seconds: float = SECONDS) -> tuple[Row, ...]:
    """Proposals about the events, best first."""
    random = np.random.default_rng(3)
    rows = []
    for rank in range(count):
        event = EVENTS[rank % len(EVENTS)]
        start, end = np.array(event["segment"]) + random.normal(0, 0.03 * rank**0.6, 2)
        start, end = sorted((max(start, 0.0), min(max(end, 0.1), seconds)))
        score = 0.86 * math.exp(-rank / 14)
        rows.append(row(round(start, 3), round(end + 0.04, 3), score, event["label"]))
    return tuple(rows)


def curves(steps: int = 100) -> dict[str, list[float]]:
    time = (np.arange(steps) + 0.5) * SECONDS / steps

    def bumps(places: list[float], width: float) -> np.ndarray:
        return np.sum([np.exp(-(((time - place) / width) ** 2)) for place in places], axis=0)

    inside = sum(((time > one.start) & (time < one.end)) * 0.85 for one in TRUTH) + 0.06
    smooth = np.convolve(np.pad(inside, 3, mode="edge"), np.ones(7) / 7, mode="valid")
    return {
        "start": (0.8 * bumps([1.1, 4.5], 0.2)).tolist(),
        "actionness": smooth.tolist(),
        "end": (0.7 * bumps([2.6, 6.0], 0.25)).tolist(),
    }


def video(video_id: str = "kitchen 01", **more: object) -> PageVideo:
    values = {
        "video_id": video_id,
        "file": "film.mp4",
        "duration_seconds": SECONDS,
        "frames_per_second": float(RATE),
        "subset": "validation",
        "recall": 0.7,
        "truth": TRUTH,
        "proposals": proposals(60),
        "events": EVENTS,
        "curves": curves(),
        "thumbnails": [(SECONDS * (k + 0.5) / 10, thumbnail((k + 0.5) / 10)) for k in range(10)],
    }
    return PageVideo(**{**values, **more})


def charts() -> tuple[Chart, ...]:
    numbers = [1, 2, 5, 10, 20, 50, 100]

    def recall(name: str, speed: float) -> Series:
        values, low, high = (
            [1 - math.exp(-(number**0.5) * speed * factor) for number in numbers]
            for factor in (1, 0.8, 1.2)
        )
        return Series(name=name, values=values, low=low, high=high)

    training = Series(name="training", values=[2 / (1 + 0.2 * k) for k in range(30)])
    losses = [None, *(2.2 / (1 + 0.15 * k) for k in range(1, 30))]
    missed = Series(
        name="span",
        values=[0.4, 0.2, 0.1, 0.05],
        low=[0.3, 0.15, 0.05, 0.0],
        high=[0.5, 0.3, 0.2, 0.1],
    )
    stages = "dataset video recognition features temporal proposals evaluation report".split()
    return (
        Chart(
            title="Recall by number of proposals",
            x_label="proposals a video",
            y_label="mean recall",
            x=numbers,
            series=[recall("span", 0.45), recall("mtn", 0.3), recall("random", 0.1)],
            note="12 videos of subset validation; 95 % intervals over videos",
        ),
        Chart(
            title="Loss",
            x_label="epoch",
            y_label="loss",
            x=list(range(1, 31)),
            series=[training, Series(name="validation", values=losses)],
        ),
        Chart(
            title="Instances missed, by length",
            x_label="length",
            y_label="share missed",
            x=["under 1 s", "1–2 s", "2–4 s", "over 4 s"],
            series=[missed, Series(name="mtn", values=[0.6, 0.3, 0.2, None])],
            kind="bars",
        ),
        Chart(
            title="Time by stage",
            x_label="stage",
            y_label="CPU time (s)",
            x=stages,
            series=[Series(name="time", values=[12, 840, 0, 1310, 620, 95, 44, 3])],
            kind="bars",
        ),
    )


TABLE = Table(
    title="Methods",
    columns=["method", "AR@10", "AR@100", "AUC (%)"],
    rows=[
        ["span", "0.61", "0.83", "71.2"],
        ["mtn", "0.52", "0.79", "64.9"],
        ["random", "0.22", "0.61", "44.0"],
    ],
    note="Subset validation, 12 videos",
)


def page(videos: list[PageVideo] | None = None, **more: object) -> Page:
    known = {"title": "Kitchen", "subtitle": "model span, actionspan 0.1.0"}
    return Page(**{**known, "videos": [video()] if videos is None else videos, **more})
