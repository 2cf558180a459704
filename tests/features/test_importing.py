"""Features people already have: each format, each way it is broken."""

import io
import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest

from actionspan.cli import main
from actionspan.dataset.tables import VIDEO_COLUMNS, write_videos
from actionspan.errors import InputError, printable
from actionspan.features.collect import collect
from actionspan.features.external import find_file, import_features, read_features, row_times
from actionspan.features.settings import ExternalSettings, RescaleSettings
from actionspan.features.store import open_features


@pytest.fixture
def matrix(rng):
    return rng.normal(size=(9, 5)).astype(np.float32)


def write(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".csv":
        np.savetxt(path, values, delimiter=",", fmt="%.9g")
    elif path.suffix in (".pkl", ".pickle"):
        path.write_bytes(pickle.dumps(values))
    else:
        with h5py.File(path, "w") as file:
            file["group/features"] = values
    return path


def npy_bytes(shape):
    """Return a file of two float32 whose header says another shape."""
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(8)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".pkl", ".pickle", ".h5", ".hdf5"])
def test_every_format_gives_the_matrix(tmp_path, matrix, suffix):
    path = write(tmp_path / f"a{suffix}", matrix)
    np.testing.assert_allclose(read_features(path, "time_first"), matrix, rtol=1e-6)
    np.testing.assert_allclose(read_features(path, "feature_first"), matrix.T, rtol=1e-6)


@pytest.mark.parametrize("header", ["f0,f1,f2,f3,f4", "0,1,2,3,4", "rgb-0,rgb-1,a,b,c"])
def test_a_line_of_names_is_not_a_row(tmp_path, matrix, header):
    path = write(tmp_path / "a.csv", matrix)
    path.write_text(header + "\r\n" + path.read_text())
    np.testing.assert_allclose(read_features(path, "time_first"), matrix, rtol=1e-6)


def test_pickles_of_lists_and_single_entries(tmp_path, matrix):
    path = tmp_path / "a.pkl"
    for content in (list(matrix), [list(map(float, row)) for row in matrix], {"feature": matrix}):
        write(path, content)
        np.testing.assert_allclose(read_features(path, "time_first"), matrix, rtol=1e-6)


@pytest.mark.parametrize("shape", [(9, 5, 1, 1), (1, 9, 5)])
def test_surplus_axes_of_length_1_are_dropped(tmp_path, matrix, shape):
    path = write(tmp_path / "a.npy", matrix.reshape(shape).astype(np.float16))
    assert read_features(path, "time_first").shape == (9, 5)


@pytest.mark.parametrize("shape", [(1, 5), (1, 5, 1), (5,)])
def test_one_row_stays_one_row(tmp_path, shape):
    path = write(tmp_path / "a.npy", np.arange(5.0).reshape(shape))
    np.testing.assert_array_equal(read_features(path, "time_first"), [[0, 1, 2, 3, 4]])


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
        ("a.pkl", pickle.dumps({"a": 1, "b": 2}), "a.pkl: a dictionary of 2 entries"),
        ("a.pkl", pickle.dumps([[1.0], [1.0, 2.0]]), "a.pkl: rows of different lengths"),
        ("a.pkl", pickle.dumps("text"), "a.pkl: not numbers"),
        ("a.pkl", pickle.dumps(np.zeros((0, 4))), r"a.pkl: shape \(0, 4\)"),
        ("a.pkl", pickle.dumps(np.zeros((2, 3, 4))), r"a.pkl: shape \(2, 3, 4\)"),
        ("a.pkl", pickle.dumps(["x", 1.0]), "a.pkl: not numbers"),
        ("a.pkl", pickle.dumps([2**70, 1.0]), "a.pkl: not numbers"),
        ("a.npy", npy_bytes((10**9, 10**9)), "a.npy: not a complete .npy file: 8 bytes of values"),
        ("a.npy", npy_bytes((3,)), "a.npy: not a complete .npy file: 8 bytes of values"),
        ("a.npy", npy_bytes((-1, -2)), "a.npy: not a complete .npy file"),
        ("a.npy", npy_bytes((1,)).replace(b"{", b"\x00"), "a.npy: not a .npy file of numbers"),
        ("a.npy", npy_bytes((1,)).replace(b"f4", b"S4"), "a.npy: not numbers but"),
        ("a.csv", b"1,2\n3," + b"x" * 10_000, "a.csv: line 2: could not convert"),
        ("a.h5", b"not hdf5", "a.h5: not a complete HDF5 file"),
    ],
)
def test_broken_files_are_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_features(tmp_path / name, "time_first")
    assert str(caught.value) == printable(str(caught.value))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".pkl"])
def test_values_too_large_for_float32_are_refused(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", np.array([[1.0, 2.0], [3.0, 1e300]]))
    with pytest.raises(InputError, match=rf"a\{suffix}: row 1, feature 1: 1e\+300: too large for"):
        read_features(path, "time_first")


def test_an_hdf5_file_reads_no_other_file(tmp_path):
    secret, path = tmp_path / "secret.txt", tmp_path / "a.h5"
    secret.write_bytes(b"TOPSECRET" * 4)
    np.save(tmp_path / "other.npy", np.zeros((2, 2)))
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (2, 4), np.float32, external=[(str(secret), 0, 32)])
    with pytest.raises(InputError, match=r"a\.h5: its values are in other files"):
        read_features(path, "time_first")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.ones((2, 4), np.float32)
    layout = h5py.VirtualLayout((2, 4), np.float32)
    layout[:] = h5py.VirtualSource(tmp_path / "b.h5", "x", (2, 4))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)
    with pytest.raises(InputError, match=r"a\.h5: its values are in other files"):
        read_features(path, "time_first")
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("b.h5", "x")
    with pytest.raises(InputError, match=r"a\.h5: holds 0 data sets"):
        read_features(path, "time_first")


def test_an_hdf5_file_without_values_is_one_line(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=None, dtype="f4")
    with pytest.raises(InputError, match=r"a\.h5: its data set is empty; want \(T, C\)"):
        read_features(tmp_path / "a.h5", "time_first")
    many = np.zeros(2, [(f"field{number}", "f4") for number in range(800)])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = many
    with pytest.raises(InputError, match=r"a\.h5: not numbers but ") as caught:
        read_features(tmp_path / "a.h5", "time_first")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "kept", [{"chunks": (100, 100)}, {"chunks": (9, 9), "compression": "gzip"}]
)
def test_an_hdf5_file_that_claims_more_than_it_has_is_refused(tmp_path, kept):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (10**6, 10**6), np.float32, **kept)[:9, :9] = 1
    with pytest.raises(InputError, match=r"a\.h5: not a complete HDF5 file: 4000000000000 bytes"):
        read_features(tmp_path / "a.h5", "time_first")


def test_a_compressed_file_loads(tmp_path):
    values = np.zeros((2000, 512), np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, compression="gzip", chunks=(200, 512))
    np.testing.assert_array_equal(read_features(tmp_path / "a.h5", "time_first"), values)


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".pkl", ".csv"])
def test_damaged_files_are_numbers_or_one_line(tmp_path, suffix, rng):
    path = write(tmp_path / f"a{suffix}", rng.normal(size=(9, 5)))
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 6)).tolist():
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(1, len(whole)) if rng.random() < 0.2 else None])
        try:
            values = read_features(path, "time_first")
        except InputError as error:
            line = str(error)
        else:
            line = ""
            assert np.isfinite(values).all()
        assert line == printable(line)
        assert len(line) < 500


def test_no_file_has_a_name_that_is_too_long(tmp_path):
    with pytest.raises(InputError, match="no file of features named xxx"):
        find_file(tmp_path, "x" * 300)


def test_an_npy_of_pickled_objects_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="a.npy: not numbers but object"):
        read_features(tmp_path / "a.npy", "time_first")


@pytest.mark.parametrize(("video", "file"), [("v_x", "x"), ("x", "v_x"), ("x", "x")])
def test_the_v_of_activitynet_is_optional(tmp_path, matrix, video, file):
    path = write(tmp_path / f"{file}.npy", matrix)
    assert find_file(tmp_path, video) == path


def test_two_files_of_one_video_are_refused(tmp_path, matrix):
    write(tmp_path / "x.npy", matrix)
    write(tmp_path / "x.csv", matrix)
    with pytest.raises(InputError, match="x.csv is of the same video"):
        find_file(tmp_path, "x")


def test_a_stride_needs_a_frame_rate(make_video):
    video = replace(make_video("a"), fps=0.0)
    assert len(row_times(4, video, ExternalSettings())) == 4
    with pytest.raises(InputError, match="stride is in frames, and the annotations give .* no fra"):
        row_times(4, video, ExternalSettings(stride=16))


def test_times_of_rows(make_video):
    video = make_video("a", duration=10.0, fps=25.0)
    even = row_times(4, video, ExternalSettings())
    np.testing.assert_allclose(even, [1.25, 3.75, 6.25, 8.75])
    strided = row_times(3, video, ExternalSettings(stride=16, offset=8))
    np.testing.assert_allclose(strided, [8 / 25, 24 / 25, 40 / 25])
    with pytest.raises(InputError, match="row 39 is at 25.28 s, the video ends at 10.00 s"):
        row_times(40, video, ExternalSettings(stride=16, offset=8))


def test_a_folder_becomes_a_shard_and_bad_files_are_reported(tmp_path, matrix, make_video, capsys):
    folder, videos, out = tmp_path / "f", tmp_path / "videos.tsv", tmp_path / "external.h5"
    folder.mkdir()
    write_videos(videos, [make_video(name) for name in "abcde"], VIDEO_COLUMNS)
    write(folder / "a.npy", matrix)
    write(folder / "b.csv", np.vstack([matrix, np.full(5, np.nan)]))
    write(folder / "c.pkl", matrix[:, :4])
    write(folder / "d.npy", np.zeros((5, 9)))
    errors = import_features(folder, videos, out, ExternalSettings())
    assert "b.csv: row 9, feature 0: nan" in errors["b"]
    assert "c.pkl: 4 features a row, other files have 5" in errors["c"]
    assert "d.npy: 9 features a row, other files have 5; is it the other --layout?" in errors["d"]
    assert "no file of features named e" in errors["e"]
    assert "rejected e: " in capsys.readouterr().err
    with h5py.File(out) as file:
        assert list(file) == ["a"]
        np.testing.assert_array_equal(file["a/external"][:], matrix)
        assert file["a"].attrs["fps"] == 25.0


def test_a_folder_without_any_features_is_one_line(tmp_path, make_video):
    videos = tmp_path / "videos.tsv"
    write_videos(videos, [make_video("a")], VIDEO_COLUMNS)
    with pytest.raises(InputError, match="no such folder"):
        import_features(tmp_path / "no", videos, tmp_path / "o.h5", ExternalSettings())
    (tmp_path / "f").mkdir()
    with pytest.raises(InputError, match="no video has features; the first: .*named a"):
        import_features(tmp_path / "f", videos, tmp_path / "o.h5", ExternalSettings())


def test_csv_mean_100_passes_through_unchanged(tmp_path, rng, write_tables):
    rows = rng.normal(0, 5.3, size=(100, 8)).astype(np.float32)
    folder = tmp_path / "csv_mean_100"
    folder.mkdir()
    path = write(folder / "v_a.csv", rows)
    path.write_text(",".join(f"f{i}" for i in range(8)) + "\n" + path.read_text())
    videos, annotations = write_tables({"a": "training"})
    shard, out = tmp_path / "external.h5", tmp_path / "features.h5"
    words = ["--folder", str(folder), "--videos", str(videos), "--out", str(shard)]
    assert main(["features", "external", *words]) == 0
    collect([shard], videos, annotations, out, RescaleSettings(components=0, standardise="none"))
    features = open_features(out)
    np.testing.assert_allclose(features.array[0], rows, rtol=1e-6)
    assert features.frame_difference is None
