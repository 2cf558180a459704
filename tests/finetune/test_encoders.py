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


def test_untuned_encoders_give_the_vectors_of_the_features_stage():
    settings = EncoderSettings(input_size=64, device="cpu", runtime="eager")
    pictures = torch.randint(0, 256, (5, 64, 64, 3), dtype=torch.uint8)
    encoders = build_encoders(("rgb",), settings, 4, 2, CPU)
    expected = Encoder(settings.rgb_encoder, None, settings, 3)(pictures.numpy())
    assert torch.equal(encoders(pictures).detach(), torch.from_numpy(expected))
    # and but for the frozen stages they learn
    assert {each.requires_grad for each in encoders.parameters()} == {True, False}


@pytest.mark.parametrize(("stream", "channels"), [("rgb", 3), ("flow", 4)])
def test_saved_and_loaded_networks_give_the_same_bits(tuned, tmp_path, stream, channels):
    settings = EncoderSettings(input_size=64, device="cpu")
    content = encoder_content(tuned, stream, settings, tuned.state_dict(), 64, "digest")
    write_model(path := tmp_path / "m.safetensors", content)
    pictures = torch.randint(1, 256, (5, 64, 64, channels), dtype=torch.uint8)
    loaded, width = build_network("efficientnet_lite0", path, channels, "pooled")
    own = tuned.of(stream)
    images = ((pictures.float() - own.mean) / own.std).movedim(-1, 1)
    assert width == 1280
    assert torch.equal(loaded(images), own(pictures).detach())


@pytest.mark.parametrize("flow", ["flow_histogram", "none"])
def test_a_stream_without_a_network_is_refused(flow):
    with pytest.raises(InputError, match=r"nothing can tune[^\n]*\Z"):
        build_encoders(("flow",), EncoderSettings(flow_encoder=flow), 4, 0, CPU)
