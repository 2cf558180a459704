"""Features people already have: each format, each way it is broken."""

import io
import pickle
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.errors import InputError, printable
from actionspan.features.collect import collect
from actionspan.features.external import find_file, import_features, row_times
from actionspan.features.external import read_features as read_in_layout
from actionspan.features.settings import ExternalSettings, RescaleSettings
from actionspan.features.store import open_features
from worlds.videos import video_of


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(9, 5)).astype(np.float32)


def write(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".csv":
        np.savetxt(path, values, delimiter=",", fmt="%.9g")
    else:
        with h5py.File(path, "w") as file:
            file["group/features"] = values
    return path


def read_features(path):
    return read_in_layout(path, "time_first")


def refused(path, message):
    """Check that reading gives one line of a length to read, printable, that has the message."""
    with pytest.raises(InputError, match=message) as caught:
        read_features(path)
    line = str(caught.value)
    assert line == printable(line)
    assert len(line) < 500


class Runs:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return Path.mkdir, (self.folder,)


def npy_bytes(*shape):
    """Return a file of two float32 whose header says another shape."""
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(8)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".h5", ".hdf5"])
def test_every_format_gives_the_matrix(tmp_path, matrix, suffix):
    path = write(tmp_path / f"a{suffix}", matrix)
    np.testing.assert_allclose(read_features(path), matrix, rtol=1e-6)
    np.testing.assert_allclose(read_in_layout(path, "feature_first"), matrix.T, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_values_too_large_for_float32_are_refused(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", np.array([[1.0, 2.0], [3.0, 1e300]]))
    refused(path, rf"a\{suffix}: row 1, feature 1: 1e\+300: too large for")


@pytest.mark.parametrize("header", ["f0,f1,f2,f3,f4", "0,1,2,3,4", "rgb-0,rgb-1,a,b,c"])
def test_a_line_of_names_is_not_a_row(tmp_path, matrix, header):
    path = write(tmp_path / "a.csv", matrix)
    path.write_text(header + "\r\n" + path.read_text())
    np.testing.assert_allclose(read_features(path), matrix, rtol=1e-6)


def test_a_pickle_is_refused_with_the_command_that_converts_it(tmp_path, matrix):
    path, ran = tmp_path / "a.pkl", tmp_path / "ran"
    path.write_bytes(pickle.dumps(Runs(ran)))
    refused(path, "a.pkl: a pickle can run any code, so it is not read; if you trust it: python -c")
    assert not ran.exists()
    path.write_bytes(pickle.dumps(matrix))
    with pytest.raises(InputError) as caught:
        read_features(path)
    subprocess.run(
        str(caught.value).partition("trust it: ")[2], shell=True, cwd=tmp_path, check=True
    )
    np.testing.assert_array_equal(read_features(tmp_path / "a.npy"), matrix)


def test_surplus_axes_are_dropped(tmp_path, matrix):
    for shape in ((9, 5, 1, 1), (1, 9, 5)):
        half = matrix.reshape(shape).astype(np.float16)
        found = read_features(write(tmp_path / "a.npy", half))
        np.testing.assert_array_equal(found, half.reshape(9, 5))
    for shape in ((1, 5), (1, 5, 1), (5,)):  # one row stays one row
        found = read_features(write(tmp_path / "a.npy", np.arange(5.0).reshape(shape)))
        np.testing.assert_array_equal(found, [[0, 1, 2, 3, 4]])


INCOMPLETE = "a.npy: not a complete .npy file"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"", "a.npy: the file is empty"),
        ("a.npy", b"not numpy", "a.npy: not a .npy file of numbers"),
        ("a.csv", b"f0,f1\n", "a.csv: no row of features"),
        ("a.csv", b"1,2\n3\n", "a.csv: line 2: 1 columns, the first row has 2"),
        ("a.csv", b"1,2\n3,x\n", "a.csv: line 2: could not convert"),
        ("a.csv", b"1,2\n3,nan\n", "a.csv: row 1, feature 1: nan: not finite"),
        ("a.csv", b"1,\xff\n", "a.csv: not UTF-8 text"),
        ("a.npy", npy_bytes(0, 4)[:-8], r"a.npy: shape \(0, 4\)"),
        ("a.npy", npy_bytes(2, 3, 4)[:-8] + bytes(96), r"a.npy: shape \(2, 3, 4\)"),
        ("a.npy", npy_bytes(10**9, 10**9), f"{INCOMPLETE}: 8 bytes of values"),
        ("a.npy", npy_bytes(3), f"{INCOMPLETE}: 8 bytes of values"),
        ("a.npy", npy_bytes(-1, -2), INCOMPLETE),
        ("a.npy", npy_bytes(1).replace(b"{", b"\x00"), "a.npy: not a .npy file of numbers"),
        ("a.npy", npy_bytes(1).replace(b"f4", b"S4"), "a.npy: not numbers but"),
        ("a.npy", npy_bytes(1).replace(b"'<f4'", b"'|O' "), "a.npy: not numbers but object"),
        ("a.csv", b"1,2\n3," + b"x" * 10_000, "a.csv: line 2: could not convert"),
        ("a.h5", b"not hdf5", "a.h5: not a complete HDF5 file"),
    ],
)
def test_broken_files_are_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, message)


def test_an_hdf5_file_reads_no_other_file_and_no_more_than_it_has(tmp_path):
    path, float32 = tmp_path / "a.h5", np.float32
    (tmp_path / "secret.txt").write_bytes(b"TOPSECRET" * 4)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.ones((2, 4), float32)
    layout = h5py.VirtualLayout((2, 4), float32)
    layout[:] = h5py.VirtualSource(tmp_path / "b.h5", "x", (2, 4))
    secret = {"external": [(str(tmp_path / "secret.txt"), 0, 32)]}
    large = {"shape": (10**6, 10**6), "dtype": float32}
    fields = np.zeros(2, [(f"field{number}", "f4") for number in range(800)])
    others, less = "its values are in other files", "not a complete HDF5 file: 4000000000000 bytes"
    for fill, message in (
        (lambda file: file.create_dataset("x", (2, 4), float32, **secret), others),
        (lambda file: file.create_virtual_dataset("x", layout), others),
        (lambda file: file.update(x=h5py.ExternalLink("b.h5", "x")), "holds 0 data sets"),
        (
            lambda file: file.create_dataset("x", shape=None, dtype="f4"),
            r"its data set is empty; want \(T, C\)",
        ),
        (lambda file: file.update(x=fields), "not numbers but "),
        (lambda file: file.create_dataset("x", **large, chunks=(100, 100)), less),
        (lambda file: file.create_dataset("x", **large, chunks=(9, 9), compression="gzip"), less),
    ):
        with h5py.File(path, "w") as file:
            fill(file)
            if "x" in file and file["x"].chunks:
                file["x"][:9, :9] = 1
        refused(path, rf"a\.h5: {message}")
    zeros = np.zeros((2000, 512), np.float32)  # as many values in fewer bytes are no fault
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=zeros, compression="gzip", chunks=(200, 512))
    np.testing.assert_array_equal(read_features(path), zeros)


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".csv"])
def test_damaged_files_are_numbers_or_one_line(tmp_path, suffix, rng):
    path = write(tmp_path / f"a{suffix}", rng.normal(size=(9, 5)))
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 6)).tolist():
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(1, len(whole)) if rng.random() < 0.2 else None])
        line = ""
        try:
            assert np.isfinite(read_features(path)).all()
        except InputError as error:
            line = str(error)
        assert line == printable(line)
        assert len(line) < 500


def test_the_v_of_activitynet_is_optional_and_there_is_one_file_of_a_video(tmp_path, matrix):
    for video, file in (("v_x", "x"), ("x", "v_x"), ("x", "x")):
        path = write(tmp_path / f"{file}.npy", matrix)
        assert find_file(tmp_path, video) == path
        path.unlink()
    for suffix in ("npy", "csv"):
        write(tmp_path / f"x.{suffix}", matrix)
    with pytest.raises(InputError, match="x.csv is of the same video"):
        find_file(tmp_path, "x")
    with pytest.raises(InputError, match="no file of features named xxx"):
        find_file(tmp_path, "x" * 300)


def test_times_of_rows():
    video, strided = video_of("a"), ExternalSettings(stride=16, offset=8)
    np.testing.assert_allclose(row_times(4, video, ExternalSettings()), [1.25, 3.75, 6.25, 8.75])
    np.testing.assert_allclose(row_times(3, video, strided), [8 / 25, 24 / 25, 40 / 25])
    with pytest.raises(InputError, match="row 39 is at 25.28 s, the video ends at 10.00 s"):
        row_times(40, video, strided)
    timeless = video_of("a", fps=0.0)
    assert len(row_times(4, timeless, ExternalSettings())) == 4
    with pytest.raises(InputError, match="stride is in frames, and the annotations give .* no fra"):
        row_times(4, timeless, ExternalSettings(stride=16))


def test_a_folder_becomes_a_shard_and_bad_files_are_reported(
    tmp_path, matrix, write_tables, capsys
):
    folder, out = tmp_path / "f", tmp_path / "external.h5"
    videos, _ = write_tables(dict.fromkeys("abcde", "training"))
    with pytest.raises(InputError, match="no such folder"):
        import_features(folder, videos, out, ExternalSettings())
    folder.mkdir()
    with pytest.raises(InputError, match="no video has features; the first: .*named a"):
        import_features(folder, videos, out, ExternalSettings())
    write(folder / "a.npy", matrix)
    write(folder / "b.csv", np.vstack([matrix, np.full(5, np.nan)]))
    write(folder / "c.h5", matrix[:, :4])
    write(folder / "d.npy", np.zeros((5, 9)))
    errors = import_features(folder, videos, out, ExternalSettings())
    for name, message in {
        "b": "b.csv: row 9, feature 0: nan",
        "c": "c.h5: 4 features a row, other files have 5",
        "d": "d.npy: 9 features a row, other files have 5; is it the other --layout?",
        "e": "no file of features named e",
    }.items():
        assert message in errors[name]
    assert "rejected e: " in capsys.readouterr().err
    with h5py.File(out) as file:
        assert list(file) == ["a"]
        np.testing.assert_array_equal(file["a/external"][:], matrix)
        assert file["a"].attrs["fps"] == 25.0


def test_csv_mean_100_passes_through_unchanged(tmp_path, rng, write_tables):
    rows = rng.normal(0, 5.3, size=(100, 8)).astype(np.float32)
    path = write(tmp_path / "v_a.csv", rows)
    path.write_text(",".join(f"f{i}" for i in range(8)) + "\n" + path.read_text())
    videos, annotations = write_tables({"a": "training"})
    shard, out = tmp_path / "external.h5", tmp_path / "features.h5"
    words = f"features external --folder {tmp_path} --videos {videos} --out {shard}"
    assert main(words.split()) == 0
    collect([shard], videos, annotations, out, RescaleSettings(components=0, standardise="none"))
    features = open_features(out)
    np.testing.assert_allclose(features.array[0], rows, rtol=1e-6)
    assert features.frame_difference is None
