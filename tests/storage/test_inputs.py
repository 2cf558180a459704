"""Which files a command may not write over, by whatever path they are named."""

from pathlib import Path

import pytest

from actionspan.errors import JobError
from actionspan.storage.inputs import inputs_kept, keep, refuse_input
from actionspan.storage.writing import write_text


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "File.txt"
    path.write_text("as it was")
    return path


def test_an_input_is_known_by_any_name(file, tmp_path):
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    (tmp_path / "sub").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path)
    names = ["File.txt", "link", "hard", "sub/../File.txt", "folder/File.txt", "./File.txt"]
    # where the file system takes them for the same
    names += ["file.TXT"] * (tmp_path / "file.TXT").exists()
    for path in (f"{tmp_path}/{name}" for name in names):
        with inputs_kept([str(file)], []), pytest.raises(JobError, match="is an input of this"):
            write_text(Path(path), "lost")
        with pytest.raises(JobError, match="name another output"), inputs_kept([file], [path]):
            pass
        assert file.read_text() == "as it was"


def test_other_files_are_written(file, tmp_path):
    other = tmp_path / "other.txt"
    with inputs_kept([file, tmp_path, None, 3, "\0", tmp_path / "none"], [other, None, tmp_path]):
        for _ in range(2):
            write_text(other, "new")
        keep([other])
        with pytest.raises(JobError):
            write_text(other, "lost")
    write_text(file, "new")  # no command runs
    keep([file])
    refuse_input(file)


def test_a_file_that_gets_the_number_of_a_removed_input_is_none(file, tmp_path):
    with inputs_kept([file], []):
        number = file.stat().st_ino
        file.rename(tmp_path / "moved.txt")
        file.write_text("another")
        assert (tmp_path / "moved.txt").stat().st_ino == number
        write_text(tmp_path / "moved.txt", "new")


def test_a_folder_where_a_file_must_be_is_named_and_the_other_way_round(file, tmp_path):
    with pytest.raises(JobError, match="is a folder; name a file"):
        write_text(tmp_path, "x")
    with pytest.raises(JobError, match=r"File\.txt: is a file; name a folder"):
        write_text(file / "x.txt", "x")
