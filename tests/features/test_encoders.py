"""The encoders: folding, names, sizes, batches, real classes, and the histogram of flow."""

import cv2
import numpy as np
import pytest
import torch

from actionspan.errors import InputError
from actionspan.features.encoders import (
    HISTOGRAM_FEATURES,
    Encoder,
    build_network,
    fit_square,
    flow_histogram,
    planes_to_batch,
)
from actionspan.features.settings import EncoderSettings
from actionspan.networks.architecture import architecture
from actionspan.networks.bn_inception import BNInception
from actionspan.networks.efficientnet_lite0 import EfficientNetLite0, SameConv2d
from actionspan.networks.i3d import I3D
from actionspan.networks.runtime import Eager
from actionspan.networks.weights import fold_batch_norms
from actionspan.video.optical_flow import CODES, quantise
from features.conftest import randomise_norms


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (5, 60, 80, 3), np.uint8)


@pytest.fixture
def bn_inception(weights):
    return weights["bn"]


def encoder_of(path, **options):
    return Encoder("bn_inception", path, EncoderSettings(**{"runtime": "eager"} | options), 3)


HISTOGRAM = {"flow_encoder": "flow_histogram"}
FOLDED = ("efficientnet_lite0", "bn_inception", "resnet18", "resnet50", "i3d")


@pytest.mark.parametrize("name", FOLDED)
def test_folding_batch_norms_changes_nothing(name):
    torch.manual_seed(0)
    network = I3D(classes=5) if name == "i3d" else architecture(name).build(3, 10)
    image = torch.randn(1, 3, 16, 64, 64) if name == "i3d" else torch.randn(1, 3, 96, 96)
    randomise_norms(network.eval())
    kinds = torch.nn.BatchNorm2d | torch.nn.BatchNorm3d
    norms = sum(isinstance(one, kinds) for one in network.modules())
    assert name != "i3d" or norms == 57
    with torch.inference_mode():
        before = network(image)
        assert fold_batch_norms(network) == norms
        after = network(image)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5 * before.abs().max().item())
    assert not any(isinstance(one, kinds) for one in network.modules())


def test_bn_inception_has_the_names_and_sizes_of_the_public_checkpoints():
    network = BNInception()
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    known = {
        "conv1_7x7_s2.weight": (64, 3, 7, 7),
        "conv1_7x7_s2_bn.running_var": (64,),
        "inception_3a_double_3x3_2.weight": (96, 96, 3, 3),
        "inception_3c_3x3.bias": (160,),
        "inception_4c_pool_proj.weight": (128, 576, 1, 1),
        "inception_4e_double_3x3_2_bn.weight": (256,),
        "inception_5b_1x1.weight": (352, 1024, 1, 1),
        "last_linear.weight": (1000, 1024),
    }
    assert shapes | known == shapes
    assert "inception_3c_1x1.weight" not in shapes  # cells of stride 2 have no 1×1 path
    assert sum(isinstance(one, torch.nn.Conv2d) for one in network.modules()) == 69
    assert sum(one.numel() for one in network.parameters()) == 11_295_240
    assert network.eval()(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)


def test_same_padding_puts_the_odd_pixel_at_the_bottom_right():
    layer = SameConv2d(1, 1, 3, 2, bias=False)
    layer.weight.data.fill_(1)
    out = layer(torch.ones(1, 1, 4, 4))
    # Windows start at row 0, not −1: the first sees 3 × 3 pixels, the last 2 × 2.
    assert out.tolist() == [[[[9, 6], [6, 4]]]]


def test_efficientnet_names_what_real_frames_show(shared_data):
    clips = shared_data / "clips" / "ucf_hmdb_clips"
    expected = {  # ImageNet: bow, croquet ball, barbell, ballplayer
        "Archery/paddlevideo_example.avi": 456,
        "BaseballPitch/v_BaseballPitch_g01_c01.avi": 522,
        "BenchPress/v_BenchPress_g01_c01.avi": 422,
        "CricketShot/v_CricketShot_g04_c01_rgb.gif": 981,
    }
    encode = Encoder("efficientnet_lite0", None, EncoderSettings(device="cpu", runtime="eager"), 3)
    network, classes = build_network("efficientnet_lite0", None, 3, "scores")
    assert (encode.features, classes) == (1280, 1000)
    encode.run = Eager(network, encode.inputs, "float32")
    for clip, label in expected.items():
        if not (clips / clip).exists():
            pytest.skip(f"the clip {clip} is not here")
        capture, frames = cv2.VideoCapture(str(clips / clip)), []
        while (read := capture.read())[0]:
            frames.append(read[1][..., ::-1])
        scores = encode(np.stack(frames)[np.linspace(0, len(frames) - 1, 5).astype(int)])
        assert torch.tensor(scores).softmax(1).mean(0).argmax() == label, clip


def test_a_video_gives_the_same_bits_whatever_is_encoded_beside_it(images, bn_inception):
    small = {"input_size": 64, "runtime": "auto"}
    encode, again = (encoder_of(bn_inception, batch_size=2, **small) for _ in range(2))
    alone = encode(images)
    encode(images[:1])
    np.testing.assert_array_equal(encode(images.copy()), alone)
    again(images[3:])
    np.testing.assert_array_equal(again(images), alone)
    for size in (1, 5):  # another changes features by rounding alone
        other = encoder_of(bn_inception, batch_size=size, **small)(images)
        np.testing.assert_allclose(other, alone, rtol=1e-4, atol=1e-5)


def test_bfloat16_is_close_and_float16_needs_a_gpu(images, bn_inception):
    full, half = (
        encoder_of(bn_inception, input_size=64, precision=kind)(images)
        for kind in ("float32", "bfloat16")
    )
    assert half.dtype == np.float32
    assert np.corrcoef(half.ravel(), full.ravel())[0, 1] > 0.99
    with pytest.raises(InputError, match="float16, which needs a CUDA device"):
        encoder_of(bn_inception, precision="float16", device="cpu")


def test_bn_inception_sees_blue_first_and_caffes_mean(images, bn_inception):
    encode = encoder_of(bn_inception, input_size=64)
    network = BNInception(classes=6).eval()
    network.load_state_dict(torch.load(bn_inception, weights_only=True))
    network.last_linear = torch.nn.Identity()
    square = np.stack([fit_square(image, 64, "squash") for image in images])
    caffe = torch.tensor(square[..., ::-1].astype(np.float32)) - torch.tensor([104.0, 117, 128])
    with torch.inference_mode():
        expected = network(caffe.permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(encode(images), expected, rtol=1e-3, atol=1e-3)


def test_no_motion_is_zero_to_the_flow_network_and_the_gain_scales_motion(bn_inception):
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, images):
            seen.append(images)
            return images.mean(dim=(2, 3))

    planes = np.full((1, 4, 32, 32), 128, np.uint8)
    planes[:, 1] = 255
    for gain in (1.0, 3.0):
        settings = EncoderSettings(flow_gain=gain, input_size=32, runtime="eager")
        encode = Encoder("efficientnet_lite0", None, settings, 4)
        encode.run = Eager(Spy(), encode.inputs, "float32")
        encode(planes)
    assert seen[0][0, 0].abs().max() == 0
    assert seen[0][0, 1].unique().tolist() == [127 / 128]
    torch.testing.assert_close(seen[1], 3 * seen[0])


def test_squash_keeps_all_of_the_frame_and_centre_its_aspect():
    image = np.zeros((40, 80), np.uint8)
    image[:, :20] = 255  # the left quarter
    squashed = fit_square(image, 32, "squash")
    assert squashed.shape == (32, 32)
    assert squashed[:, :8].min() == 255
    assert squashed[:, 8:].max() == 0
    assert fit_square(image, 32, "centre").max() == 0  # columns 20 to 60
    np.testing.assert_array_equal(fit_square(image[:, :40], 40, "squash"), image[:, :40])


def test_planes_keep_their_channel_and_the_embedded_encoder_takes_them(rng):
    planes = np.stack([np.full((20, 30), level, np.uint8) for level in range(10)])[None]
    batch = planes_to_batch(planes, 16, "squash")
    assert batch.shape == (1, 16, 16, 10)
    np.testing.assert_array_equal(batch[0, 3, 4], np.arange(10))
    encode = Encoder("efficientnet_lite0", None, EncoderSettings(), 10)
    out = encode(rng.integers(0, 256, (2, 10, 50, 70), np.uint8))
    assert out.shape == (2, 1280)
    assert np.isfinite(out).all()
    assert EfficientNetLite0.features == encode.features == 1280


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "scores"}, "rgb_weights must name the checkpoint of a trained classifier"),
        ({"source": "scores", **HISTOGRAM}, "give pooled"),
        ({"source": "scores", "rgb_encoder": "hf:a/b"}, "source is scores: hf:a/b gives none"),
        ({"source": "scores", "clip_encoder": "./a"}, "source is scores: ./a gives none"),
        ({"rgb_encoder": "resnet19"}, "one of .*timm:MODEL, hf:ORGANISATION/MODEL or a path"),
        ({"clip_encoder": "timm:vit"}, "clip_encoder 'timm:vit': one of none, i3d, hf:"),
        ({**HISTOGRAM, "flow_histogram": True}, "has no network's features to append it to"),
        ({"clip_window": 60}, "clip_window 60: must be a multiple of 8"),
        ({"clip_window": 64, "clip_stride": 72}, "clip_stride 72: must be clip_window or"),
        ({"clip_window": 64, "clip_stride": 56}, "clip_stride 56: .*of 16 less"),
    ],
)
def test_settings_that_contradict_each_other_name_themselves(options, message):
    with pytest.raises(ValueError, match=message):
        EncoderSettings(**options)


BOUND = 20.0
HEIGHT, WIDTH = 96, 144
CELLS = 16


def planes(x: np.ndarray | float, y: np.ndarray | float, pairs: int = 3) -> np.ndarray:
    """Quantise one motion field, the same for every pair."""
    fields = [np.broadcast_to(field, (HEIGHT, WIDTH)) for field in (x, y)]
    return np.tile(quantise(np.stack(fields).astype(np.float32), BOUND), (pairs, 1, 1))


def decoded(planes: np.ndarray) -> np.ndarray:
    """Undo the signed square root of their histogram."""
    values = flow_histogram(planes, BOUND)
    return np.sign(values) * values.astype(np.float64) ** 2


def test_stillness_and_a_moving_camera_leave_nothing_but_the_camera():
    still = decoded(planes(0, 0))
    moving = decoded(planes(6.0, -4.0))
    for values in (still, moving):
        np.testing.assert_allclose(np.delete(values, [-4, -3]), 0, atol=1e-6)
    np.testing.assert_array_equal(still, 0)
    half_a_code = 100 * BOUND / CODES / HEIGHT / 2
    camera = 100 * np.array([6.0, -4.0]) / HEIGHT  # percent of the height
    np.testing.assert_allclose(moving[-4:-2], camera, atol=1.01 * half_a_code)


@pytest.mark.parametrize("orientation", range(8))
def test_a_moving_cell_shows_its_place_its_direction_and_its_speed(orientation):
    angle = orientation * np.pi / 4
    x, y = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    rows, columns = slice(24, 48), slice(72, 108)  # cell (1, 2) of 4 × 4
    x[rows, columns], y[rows, columns] = 8 * np.cos(angle), 8 * np.sin(angle)
    values = decoded(planes(x, y))
    cells = values[: CELLS * 11].reshape(CELLS, 11)
    moving = cells[1 * 4 + 2]
    speed = 100 * 8 / HEIGHT
    assert moving[orientation] == pytest.approx(speed, rel=0.03)
    assert np.delete(moving[:8], orientation).max() < 0.03 * speed
    expected = [speed, speed * np.cos(angle), speed * np.sin(angle)]
    np.testing.assert_allclose(moving[8:], expected, atol=0.03 * speed)
    np.testing.assert_allclose(np.delete(cells, 6, axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(values[CELLS * 11 : 17 * 11], moving / CELLS, atol=1e-6)


def test_between_two_orientations_magnitude_is_shared_and_kept():
    x, y = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    x[:24, :36], y[:24, :36] = 8 * np.cos(np.pi / 8), 8 * np.sin(np.pi / 8)
    cell = decoded(planes(x, y))[:11]
    assert cell[0] == pytest.approx(cell[1], rel=0.05)
    assert cell[:8].sum() == pytest.approx(cell[8], rel=1e-5)


def test_flow_of_the_same_share_of_the_frame_is_the_same_at_any_size():
    x = np.zeros((HEIGHT, WIDTH))
    x[:24, :36] = 8.0
    small = planes(x, 0)
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    out = flow_histogram(small, BOUND)
    assert out.shape == (HISTOGRAM_FEATURES,)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, flow_histogram(large, 2 * BOUND), atol=1e-5)
