import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import Encoder, build_network
from actionspan.features.settings import EncoderSettings
from actionspan.finetune.encoders import build_encoders, encoder_content
from actionspan.storage.model_files import write_model

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tuned():
    """Encoders of both streams whose every parameter has moved."""
    encoders = build_encoders(("rgb", "flow"), EncoderSettings(), 4, 0, CPU)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for each in encoders.parameters():
            each += 0.01 * torch.randn(each.shape, generator=generator) * each.abs().mean()
    return encoders


def test_untuned_encoders_give_what_the_features_stage_gives():
    settings = EncoderSettings(input_size=64, device="cpu", runtime="eager")
    pictures = torch.randint(0, 256, (5, 64, 64, 3), dtype=torch.uint8)
    encoders = build_encoders(("rgb",), settings, 4, 0, CPU)
    expected = Encoder(settings.rgb_encoder, None, settings, 3)(pictures.numpy())
    assert torch.equal(encoders(pictures).detach(), torch.from_numpy(expected))


@pytest.mark.parametrize(("stream", "channels"), [("rgb", 3), ("flow", 4)])
def test_saved_and_loaded_networks_give_the_same_bits(tuned, tmp_path, stream, channels):
    settings = EncoderSettings(input_size=64, device="cpu")
    content = encoder_content(tuned, stream, settings, tuned.state_dict(), 64, "digest")
    write_model(tmp_path / "model.safetensors", content)
    pictures = torch.randint(1, 256, (5, 64, 64, channels), dtype=torch.uint8)
    loaded, width = build_network(
        "efficientnet_lite0", tmp_path / "model.safetensors", channels, "pooled"
    )
    own = tuned.of(stream)
    images = ((pictures.float() - own.mean) / own.std).movedim(-1, 1)
    assert width == 1280
    assert torch.equal(loaded(images), own(pictures).detach())


def test_every_parameter_learns_and_frozen_stages_do_not():
    encoders = build_encoders(("rgb",), EncoderSettings(), 4, 2, CPU)
    learns = [each.requires_grad for each in encoders.parameters()]
    assert True in learns
    assert False in learns


@pytest.mark.parametrize(
    ("settings", "streams", "frozen", "message"),
    [
        (EncoderSettings(flow_encoder="flow_histogram"), ("flow",), 0, "nothing can tune"),
        (EncoderSettings(flow_encoder="none"), ("flow",), 0, "nothing can tune"),
        (EncoderSettings(), ("rgb",), 99, "has 7 stages"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(settings, streams, frozen, message):
    with pytest.raises(InputError, match=message) as raised:
        build_encoders(streams, settings, 4, frozen, CPU)
    assert "\n" not in str(raised.value)
