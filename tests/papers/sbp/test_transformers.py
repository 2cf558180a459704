"""Rendered clips, ways to train on them, and the steps that compare these, on tiny inputs."""

import pytest
import torch

from actionspan.errors import InputError
from actionspan_papers.sbp import table2
from actionspan_papers.sbp.clips import (
    CLASSES,
    correct,
    layers_of,
    make_network,
    read_trained,
    saved_by_a_clip,
    train,
    training_and_validation,
)
from actionspan_papers.sbp.figure1 import by_frame
from actionspan_papers.sbp.figure4 import linear_cka
from actionspan_papers.sbp.published import ACCURACY, CHECKERBOARD, DROPOUT, END_TO_END, FRAMES
from actionspan_papers.sbp.settings import TransformerSettings
from actionspan_papers.sbp.swin import Shape
from papers.steps import cells, step_rows

SMALL = TransformerSettings(
    training_clips=36, validation_clips=12, side=32, width=16, layers=3, top_layers=1, epochs=1
)
FLAGS = [
    *("--training-clips", 36, "--validation-clips", 12, "--side", 32, "--width", 16),
    *("--layers", 3, "--top-layers", 1, "--epochs", 1, "--seeds", 2, "--resamples", 50),
]


@pytest.fixture(scope="module")
def clips():
    return training_and_validation(SMALL)


def test_clips_are_of_all_classes_and_on_one_scale(clips):
    training, validation = clips
    assert training.inputs.shape == (36, 8, 2, 32, 32)
    assert validation.labels.tolist() == list(range(len(CLASSES))) * 2
    still = training.inputs[:, :, 0]
    assert float(still.std()) == pytest.approx(1, abs=0.01)
    moved = 2 * (still[:, 1:] - still[:, :-1])
    torch.testing.assert_close(training.inputs[:, 1:, 1], moved, rtol=0, atol=0)
    assert training.inputs[:, 0, 1].abs().max() == 0
    moved = training.inputs[:, :, 1].abs().mean(dim=(1, 2, 3))  # (n,)
    background = training.labels == CLASSES.index("background")
    assert moved[~background].median() > moved[background].median()


def test_clips_do_not_depend_on_how_many_there_are_and_subsets_differ(clips):
    settings = TransformerSettings(training_clips=12, validation_clips=12, side=32)
    fewer, _ = training_and_validation(settings)
    training, validation = clips

    def edges(inputs):  # without the mean and the scale of the training clips
        return (inputs[:12, 1:, 1] > 0).float()

    assert torch.equal(edges(fewer.inputs), edges(training.inputs))
    assert (edges(validation.inputs) != edges(fewer.inputs)).float().mean() > 0.1


def test_a_network_learns_the_clips_it_is_shown(clips):
    settings = TransformerSettings(side=32, width=32, layers=3, top_layers=1, epochs=25)
    training, _ = clips
    network = train(FRAMES, training, settings, seed=1)
    assert float(correct(network, training).mean()) > 0.5  # one in six by chance


def test_the_same_seed_gives_the_same_network_of_a_way(clips):
    ways = (CHECKERBOARD, CHECKERBOARD, FRAMES)
    one, same, other = (train(way, clips[0], SMALL, seed=1).state_dict() for way in ways)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_ways_save_what_they_should():
    saved = {way: saved_by_a_clip(way, TransformerSettings()) for way in ACCURACY}
    assert saved[FRAMES] == saved[CHECKERBOARD]
    assert saved[DROPOUT] < saved[FRAMES] < saved[END_TO_END]
    # the pictures, 16 parts in each layer, 4 + 12 r in those that are sampled; a part is all nodes
    part = 72 * 32 * 4
    whole, sampled = 16 * part + 6 * 16 * part, 16 * part + (2 * 16 + 4 * 7) * part
    assert saved[FRAMES] / saved[END_TO_END] == pytest.approx(sampled / whole, abs=0.02)


def test_layers_and_frames_are_taken_apart(clips):
    network = make_network(SMALL)
    layers = layers_of(network, clips[1], batch=5)
    assert [tuple(nodes.shape) for nodes in layers] == [(12, 8 * 4, 16)] * 4
    with torch.no_grad():
        scores = network.classifier(network.norm(layers[-1]).mean(dim=1))
        torch.testing.assert_close(scores, network(clips[1].inputs))
    frames = by_frame(layers[0], 8)
    assert torch.equal(frames[3, 2], layers[0][3, 8:12].flatten())


@pytest.fixture(scope="module")
def table3(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table3")
    networks = folder / "networks.pt"
    return networks, step_rows(folder, "sbp", "table3", *FLAGS, "--out-networks", networks)


def test_table3_has_a_row_a_way_and_keeps_the_networks(table3, clips):
    networks, rows = table3
    assert [row["way"] for row in rows] == list(ACCURACY)
    assert all(0 <= float(row["top1_low"]) <= float(row["top1_high"]) <= 100 for row in rows)
    assert rows[0]["less_than_end_to_end"] == rows[2]["above_frame_wise"] == ""
    assert networks.with_name("table3.md").read_text().count("Claim: ") == 4
    trained = read_trained(networks)
    assert trained.settings == SMALL
    assert [len(trained.networks[way]) for way in ACCURACY] == [2, 2, 2, 2]
    top1 = [100 * float(correct(one, clips[1]).mean()) for one in trained.networks[DROPOUT]]
    assert rows[1]["top1_of_seeds"] == " ".join(f"{value:.2f}" for value in top1)


def test_figure4_compares_networks_of_the_same_seed_and_of_others(tmp_path, table3, clips):
    rows = step_rows(tmp_path, "sbp", "figure4", "--networks", table3[0], figure=True)
    assert len(rows) == (1 + 4 + 4) * 4  # pairs, and layers with what enters the first
    assert {row["start"] for row in rows if row["way"] == END_TO_END} == {"other"}
    # any of them is of the networks that it names
    trained = read_trained(table3[0]).networks
    networks = trained[END_TO_END][0], trained[DROPOUT][1]
    one, other = (layers_of(network, clips[1])[2].flatten(1) for network in networks)
    named = {"way": DROPOUT, "start": "other", "seed": "1", "other_seed": "2", "layer": "2"}
    (row,) = [row for row in rows if named.items() <= row.items()]
    assert float(row["cka"]) == pytest.approx(linear_cka(one, other), abs=1e-4)
    assert len(cells(tmp_path / "figure4.md")) == 2 + 5
    assert (tmp_path / "figure4.svg").stat().st_size > 1000


def test_figure1_has_activations_and_gradients_of_every_layer(tmp_path, table3):
    rows = step_rows(tmp_path, "sbp", "figure1", "--networks", table3[0], figure=True)
    assert len(rows) == 2 * 3 * 4
    assert all(-1 <= float(row["cosine"]) <= 1 for row in rows)
    last = [row for row in rows if (row["layer"], row["kind"]) == ("3", "gradients")]
    assert all(float(row["cosine"]) > 0.9 for row in last)  # all nodes go into one mean
    assert (tmp_path / "figure1.png").stat().st_size > 1000
    torch.save({"weights": {}}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="not the networks of `papers sbp table3`"):
        read_trained(tmp_path / "other.pt")


def test_table2_has_both_forms_of_attention(tmp_path, monkeypatch):
    rows = table2.cost_rows(Shape(96, (1, 1), 0), (8, 14, 14))
    monkeypatch.setattr(table2, "cost_rows", lambda *_: rows)
    rows = step_rows(tmp_path, "sbp", "table2")
    assert [row["published_gb"] for row in rows[:5]] == ["15.2", "5.8", "4.4", "3.2", "2.9"]
    text = (tmp_path / "table2.md").read_text()
    assert "equation (4) 0.551, 0.326, 0.214" in text
    assert "with explicit attention 0.571, 0.356, 0.249" in text
    assert "with fused attention 0.625, 0.438, 0.344" in text


def test_settings_that_do_not_fit_are_named():
    for wrong, line in (
        ({"side": 40}, "side 40: must be a multiple of 16"),
        ({"top_layers": 6}, "top_layers 6: fewer than the 6 layers"),
    ):
        with pytest.raises(ValueError, match=line):
            TransformerSettings(**wrong)
