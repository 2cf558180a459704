"""Labels by words: what the library would say of the same pictures, and the command."""

import numpy as np
import pytest
import torch

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from actionspan.errors import InputError
from actionspan.propose.labels import Labelling, Labels, WordModel, labels_of
from actionspan.propose.proposed import Proposed
from actionspan.video.decode import read_frames
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import snippets
from find.test_words import write_words
from networks.test_hub import write_model
from networks.test_hub_clips import write_xclip
from propose.conftest import results

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

LABELS = ("falls", "jumps", "a person")
WORDINGS = ("{}", "a photo of {}", "a video of {}", "a scene in which {}")
KNOWN = "a person falls jumps photo video of scene in which"
SEGMENTS = np.array([[0.0, 2.0], [1.5, 4.0], [2.01, 2.02]])  # the last between two snippets


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    render_demo(folder, DemoSettings(videos=1, shortest_seconds=5.0, longest_seconds=6.0), 1)
    return next(folder.glob("*.mp4"))


@pytest.fixture
def clip(tmp_path):
    model, processor = write_model(tmp_path / "clip", "clip")
    write_words(tmp_path / "clip", model, KNOWN)
    return tmp_path / "clip", model, processor


def normal(vectors: torch.Tensor, dim: int = -1) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors, dim=dim)


def vectors_of(model, folder, labels) -> torch.Tensor:
    """Return the mean vector of the wordings of each label, by the library."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [wording.format(label) for label in labels for wording in WORDINGS]
    words = model.get_text_features(**tokenizer(texts, padding=True, return_tensors="pt"))
    return normal(normal(words.pooler_output).view(len(labels), len(WORDINGS), -1).mean(dim=1))


class Given:
    """A proposer that gives these segments."""

    cameras: dict = {}  # noqa: RUF012, whole frames

    def propose(self, video, on_progress=None):
        scores = np.linspace(1, 0.1, len(SEGMENTS))
        events = {"events": SEGMENTS[:1], "chances": scores[:1], "motion": np.zeros(100)}
        return Proposed(duration_seconds=5.0, segments=SEGMENTS, scores=scores, **events)


def test_chances_are_those_of_the_library(clip, video):
    folder, model, processor = clip
    found = Labelling(Given(), Labels(LABELS, str(folder))).propose(video)
    seen = list(snippets(video, FrameSettings(mover_side=0)))
    with torch.no_grad():
        pictures = processor(images=[one.rgb for one in seen], return_tensors="pt")
        vectors = normal(model.get_image_features(**pictures).pooler_output)
        words = vectors_of(model, folder, LABELS)
        expected = []
        for start, end in SEGMENTS:
            inside = [k for k, one in enumerate(seen) if start <= one.seconds < end]
            middle = (start + end) / 2
            inside = inside or [min(range(len(seen)), key=lambda k: abs(seen[k].seconds - middle))]
            shown = normal(vectors[inside].mean(dim=0), dim=0)
            expected.append(torch.softmax(model.logit_scale.exp() * (words @ shown), dim=0))
    assert found.classes == LABELS
    np.testing.assert_allclose(found.class_scores, torch.stack(expected), atol=1e-4)
    np.testing.assert_allclose(found.event_classes, torch.stack(expected)[:1], atol=1e-4)
    assert np.ptp(found.class_scores, axis=0).max() > 1e-3  # segments differ


def test_a_person_asks_for_labels(clip, video, here, tmp_path):
    given = (tmp_path / "out", video, "--model", "none", "--no-page", "--labels-by", clip[0])
    assert here(*given, "--labels", "falls, jumps").status == 0
    rows = [row for own in results(tmp_path / "out", "events").values() for row in own]
    assert rows
    assert {row["label"] for row in rows} <= {"falls", "jumps"}
    # other labels are of other results
    call = here(*given, "--labels", "falls, a person")
    assert call.status == 2
    assert "holds proposals of another model" in call.errors[-1]


@pytest.mark.full
def test_clips_know_words_too(video, tmp_path):
    model, processor = write_xclip(tmp_path / "xclip")
    write_words(tmp_path / "xclip", model, KNOWN)
    labelling = Labelling(Given(), Labels(("falls", "jumps"), str(tmp_path / "xclip")))
    found = labelling.propose(video)
    # clips of four frames, four a second, every second frame, the outermost repeated
    frames = [frame for frame in read_frames(video)]
    times = np.array([frame.seconds for frame in frames])
    last = int(times[-1] * 4 + 1e-4)
    samples = [frames[np.abs(times - k / 4).argmin()].picture() for k in range(last + 1)]
    vectors = []
    with torch.no_grad():
        for start in range(0, len(samples), 2):
            clip = [samples[min(max(start - 1 + k, 0), last)] for k in range(4)]
            pixels = processor(images=clip, return_tensors="pt").pixel_values
            vectors.append(model.get_video_features(pixel_values=pixels[None]).pooler_output[0])
        words = vectors_of(model, tmp_path / "xclip", ("falls", "jumps"))
    at_snippets = [one.seconds for one in snippets(video, FrameSettings(mover_side=0))]
    middles = (np.arange(len(vectors)) * 2 + 0.5) / 4
    rows = np.stack(
        [np.interp(at_snippets, middles, column) for column in torch.stack(vectors).T], 1
    )
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    inside = (np.array(at_snippets) >= SEGMENTS[1, 0]) & (np.array(at_snippets) < SEGMENTS[1, 1])
    shown = torch.from_numpy(unit[inside].mean(axis=0)).float()
    expected = torch.softmax(model.logit_scale.exp() * (words @ normal(shown, dim=0)), dim=0)
    np.testing.assert_allclose(found.class_scores[1], expected.detach(), atol=2e-3)
    assert abs(float(expected[0].detach()) - 0.5) > 0.01


def test_other_words_of_a_model_make_other_results(clip):
    folder, *_ = clip
    before = WordModel(str(folder))
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace("jumps", "swims"))
    after = WordModel(str(folder))
    assert before.digest == after.digest  # its features stay
    assert before.made_by != after.made_by


def test_what_is_no_list_of_labels_is_one_line():
    for words, model, message in (
        ("fall, sit", None, "--labels and --labels-by: give both"),
        (None, "hf:a/b", "--labels and --labels-by: give both"),
        ("fall", "hf:a/b", "--labels 'fall': two different labels at least"),
        ("fall, fall", "hf:a/b", "two different labels at least"),
    ):
        with pytest.raises(InputError, match=message):
            labels_of(words, model)
