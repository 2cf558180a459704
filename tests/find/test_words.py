"""Search by words: planted texts, and the model's own words by the library."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from actionspan.errors import InputError
from actionspan.find.listing import listed
from actionspan.find.words import find_words
from actionspan.networks.hub import find_source
from actionspan.networks.hub_words import text_vectors
from networks.test_hub import WORDS, write_model, write_timm
from networks.test_hub_clips import write_xclip
from worlds.command import actionspan

STEP = 0.5  # seconds
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def test_a_planted_text_is_found_in_whatever_scene_and_ends_where_it_ends():
    rng = np.random.default_rng(0)
    wanted, background = rng.normal(size=(2, 1, 32))
    places = {"a": (20.0, 32.0), "b": (70.0, 74.0), "c": None}
    rows = {}
    for name, place in places.items():
        # a scene that is always as near to the text as it is
        frames = 2 * rng.normal(size=32) + rng.normal(scale=0.5, size=(240, 32))
        if place is not None:
            frames[round(place[0] / STEP) : round(place[1] / STEP)] += wanted[0]
        frames[200:212] += background[0]  # what is not meant
        rows[name] = frames.astype(np.float32)
    given = [(name, frames, STEP) for name, frames in rows.items()]
    found = find_words(given, unit(wanted), unit(background))
    shown = listed(
        {name: [each] for name, each in found.items()}, ["it"], dict.fromkeys(rows, 120.0), 2
    )
    for name, place in places.items():
        if place is None:
            assert not len(shown[name].events)
        else:
            np.testing.assert_allclose(shown[name].events, [place], atol=1.3)
            assert shown[name].chances[0] > 0.6
    assert all((each.scores >= 0).all() and (each.scores < 1).all() for each in found.values())


def write_words(folder, model, words: str) -> None:
    """Write a tokenizer of whole words beside a model."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = {"[PAD]": 0, "[BOS]": 1, "[EOS]": 2, "[UNK]": 3}
    known |= {word: 4 + place for place, word in enumerate(words.split())}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
    ).save_pretrained(folder)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_words_are_what_the_library_makes_of_them(tmp_path, family):
    model, _ = write_model(tmp_path, family)
    write_words(tmp_path, model, "a person falls jumps")
    texts = ["a person falls", "a person jumps", "falls"]
    found = text_vectors(find_source(str(tmp_path)), texts)
    assert found.scale == pytest.approx(float(model.logit_scale.detach().exp()))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    whole = {"padding": "max_length", "max_length": WORDS["max_position_embeddings"]}
    how = {"padding": True} if family == "clip" else whole
    with torch.no_grad():
        given = tokenizer(texts, return_tensors="pt", **how)
        expected = model.get_text_features(**given).pooler_output.numpy()
    np.testing.assert_allclose(found.vectors, unit(expected), atol=1e-5)
    assert not np.allclose(found.vectors[0], found.vectors[1])


def test_a_model_without_its_tokenizer_or_of_pictures_alone_knows_no_words(tmp_path):
    write_model(tmp_path / "clip", "clip")
    (tmp_path / "clip/tokenizer").mkdir()  # of whatever else is there
    with pytest.raises(InputError, match="its tokenizer is not here"):
        text_vectors(find_source(str(tmp_path / "clip")), ["a person"])
    write_model(tmp_path, "dinov2")
    with pytest.raises(InputError, match="knows no words; give a model of images and words"):
        text_vectors(find_source(str(tmp_path)), ["a person"])
    _, file = write_timm(tmp_path / "timm", "test_vit")
    with pytest.raises(InputError, match="knows no words"):
        text_vectors(find_source("timm:test_vit", file), ["a person"])


def made(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.h5")}


@pytest.mark.full
@pytest.mark.parametrize("write", [lambda folder: write_model(folder, "clip"), write_xclip])
def test_a_search_by_words_gives_a_page_and_tables(tmp_path, write, capsys):
    """By the words of a model of images, and of one of clips."""
    model, _ = write(tmp_path / "model")
    write_words(tmp_path / "model", model, "a person falls jumps photo video of scene in which")
    settings = DemoSettings(videos=2, shortest_seconds=5.0, longest_seconds=6.0)
    render_demo(tmp_path / "videos", settings, 1)
    (tmp_path / "videos/annotations.json").unlink()
    out = tmp_path / "found"
    given = ("--encoder", tmp_path / "model", "--out", out, "--top", 3)
    assert actionspan("find", "a person falls", tmp_path / "videos", *given) == 0
    said = capsys.readouterr().out
    assert "like 'a person falls', in 2 videos; open" in said
    found = json.loads((out / "proposals.json").read_text())["results"]
    assert len(found) == 2
    rows = [row for each in found.values() for row in each]
    assert {row["label"] for row in rows} <= {"a person falls"}
    assert all(0 < row["score"] < 1 for row in rows)
    # other words need no decoding
    features = made(out)
    assert actionspan("find", "jumps", tmp_path / "videos", *given, "--no-page") == 0
    assert len(features) == 2
    assert made(out) == features


def test_what_cannot_be_asked_for_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "video.mp4").write_bytes(b"none")
    name = "timm:MODEL, hf:ORGANISATION/MODEL or a path"
    for words, message in (
        (["a person falls", "."], "--encoder: name a model of images and words"),
        (["a person falls"], "'a person falls' in which videos"),
        ([".", "--encoder", "hf:a/b"], "a file or folder; put the search text first"),
        (["falls", ".", "--encoder", "resnet18"], "--encoder resnet18: timm:MODEL, hf:"),
        (["falls", ".", "--encoder", "clip"], f"--encoder clip: {name}"),
        (["falls", ".", "--encoder", "./nothing"], "./nothing: no such folder or file"),
        (["falls", "--encoder", "clip", "."], f"--encoder clip: {name}"),
        (["x" * 300, ".", "--encoder", "clip"], f"--encoder clip: {name}"),
        (["falls", ".", "--encoder", "hf:a/b", "--index"], "--index: of a search by --like"),
        ([".", "--like", "x.csv", "--encoder", "hf:a/b"], "of a search by words, not --like"),
    ):
        assert actionspan("find", *words) == 2
        shown = capsys.readouterr().err
        assert message in shown
        assert "Traceback" not in shown
