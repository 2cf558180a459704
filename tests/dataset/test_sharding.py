"""Videos of a folder and their shards, by name alone."""

import hashlib
import os
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.names import other_names
from actionspan.dataset.sharding import (
    MOST_SHARDS,
    assign_shards,
    find_videos,
    possible_shards,
    scan_videos,
)
from actionspan.errors import InputError
from tiers import examples

IDS = st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=120)
PER_SHARD = st.one_of(st.just("auto"), st.integers(1, 9))


@examples(60)
@given(ids=IDS, per_shard=PER_SHARD)
def test_every_id_is_in_one_shard_that_its_name_says_whatever_the_order(ids, per_shard):
    shards = assign_shards(ids, per_shard)
    assert sorted(sum(shards.values(), [])) == sorted(ids)
    assert all(members and members == sorted(members) for members in shards.values())
    assert list(shards) == sorted(shards)
    for shard, members in shards.items():
        assert all(shard in possible_shards(video) for video in members)
    assert all(len(possible_shards(video)) <= 16 for video in ids)
    assert shards == assign_shards(ids[::-1], per_shard)


def test_a_video_of_the_largest_set_is_where_its_name_says():
    ids = [f"v{number}" for number in range(MOST_SHARDS)]
    shards = assign_shards(ids * 3, 3)
    assert max(map(int, shards)) == MOST_SHARDS - 1
    assert all(shard in possible_shards(members[0]) for shard, members in shards.items())


@examples(100)
@given(ids=IDS, new=st.text(min_size=1, max_size=12), per_shard=PER_SHARD)
def test_a_new_video_touches_its_own_shard_and_at_most_one_that_splits(ids, new, per_shard):
    ids = [name for name in ids if name != new]
    before, after = assign_shards(ids, per_shard), assign_shards([*ids, new], per_shard)

    def gone(one, other):
        """Return the ids that a shard of one set has and that of the other lacks, by shard."""
        every = {shard: set(members) - set(other.get(shard, [])) for shard, members in one.items()}
        return {shard: members for shard, members in every.items() if members}

    moved, gained = gone(before, after), gone(after, before)
    assert len(moved) <= 1
    assert len(gained) <= 2
    for members in moved.values():  # all that moved went to the shard that is new
        (target,) = {shard for shard, others in after.items() if members & set(others)}
        assert target not in before


@pytest.mark.parametrize(
    ("videos", "shards"),
    [
        *[(1, 1), (3, 3), (8, 4), (96, 4), (97, 5), (800, 34), (20000, 1024)],
        pytest.param(65536, 1024, marks=pytest.mark.full),
        pytest.param(200000, 3125, marks=pytest.mark.full),
        pytest.param(1000000, 15625, marks=pytest.mark.full),
    ],
)
def test_auto_makes_4_shards_or_more_of_24_to_64_videos(videos, shards):
    names = assign_shards([f"video{i}" for i in range(videos)], "auto")
    assert len(names) <= shards
    assert max(int(name) for name in names) <= shards - 1
    assert all(len(name) == max(4, len(str(int(name)))) for name in names)


@pytest.mark.parametrize(("least", "shards"), [(1, 2), (2, 2), (8, 8), (64, 36)])
def test_auto_makes_as_many_as_are_asked_for_at_least(least, shards):
    buckets = {int(name) for name in assign_shards([f"v{i}" for i in range(36)], "auto", least)}
    assert shards // 2 <= max(buckets) < shards


def test_linear_hashing_by_hand():
    # Buckets are the SHA-256 modulo 4, or modulo 2 where that bucket does not exist yet.
    ids = [f"v{i}" for i in range(5)]
    hashes = {name: hashlib.sha256(name.encode()).digest() for name in ids}
    values = {name: int.from_bytes(sha256[:8], "big") for name, sha256 in hashes.items()}
    expected = {}
    for name in ids:  # 5 videos, 2 a shard: 3 shards
        bucket = values[name] % 4 if values[name] % 4 < 3 else values[name] % 2
        expected.setdefault(f"{bucket:04d}", []).append(name)
    assert assign_shards(ids, 2) == dict(sorted(expected.items()))


def test_one_video_per_shard_is_named_after_it_safely():
    ids = ["plain-1.a", "two words", "it's", "ünï", "-flag", ".hidden", "x" * 300, "a_b", "a b"]
    shards = assign_shards(ids, 1)
    assert sorted(members[0] for members in shards.values()) == sorted(ids)
    assert all(len(members) == 1 for members in shards.values())
    assert shards["plain-1.a"] == ["plain-1.a"]
    assert all(re.fullmatch("(?![.-])[!-~]{1,100}", name) for name in shards)
    assert not set("".join(shards)) & set("'\"/\\$")


@pytest.mark.parametrize("wrong", [0, -1, "many", 1.5, None])
def test_a_wrong_size_of_shards_is_named(wrong):
    with pytest.raises(ValueError, match=r"videos_per_shard: .* is not 'auto' or at least 1"):
        assign_shards(["a"], wrong)


def test_videos_are_found_by_suffix_in_any_case(tmp_path):
    for name in ["b.mp4", "A.AVI", "a.b.mkv", "two words.webm", "notes.txt", "q'\".mov", ".mp4"]:
        (tmp_path / name).touch()
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner.mp4").touch()
    found = find_videos(tmp_path)
    assert list(found) == ["A", "a.b", "b", "q'\"", "two words"]
    assert found["a.b"] == tmp_path / "a.b.mkv"
    assert scan_videos(tmp_path)[1] == {}


def test_what_is_passed_over_has_a_reason(tmp_path):
    (tmp_path / "a.avi").touch()
    (tmp_path / "a.mp4").touch()
    (tmp_path / "gone.mp4").symlink_to(tmp_path / "nowhere.mp4")
    (tmp_path / "line\nbreak.mp4").touch()
    Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.mp4")).touch()
    assert list(find_videos(tmp_path)) == ["a"]
    assert find_videos(tmp_path)["a"].name == "a.avi"
    rename = "the file's name is not UTF-8 or holds a control character; rename the file"
    assert scan_videos(tmp_path)[1] == {
        f"{tmp_path}/a.mp4": (
            "a.avi has the same name, which is the id of a video; rename one of the two"
        ),
        f"{tmp_path}/gone.mp4": "a link to a file that does not exist",
        f"{tmp_path}/line\\nbreak.mp4": rename,
        f"{tmp_path}/caf\\xe9.mp4": rename,
    }


def test_what_is_no_file_does_not_refuse_the_folder(tmp_path):
    (tmp_path / "a.mp4").touch()
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "one.mp4").symlink_to("other.mp4")
    (tmp_path / "other.mp4").symlink_to("one.mp4")
    (tmp_path / "zero.mp4").symlink_to("/dev/zero")
    (tmp_path / "folder.mp4").mkdir()
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "piped.mp4").symlink_to("pipe.mp4")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.mp4"))
    assert list(find_videos(tmp_path)) == ["a"]
    loop, pipe = "a link that leads to itself", "not a file but a pipe"
    assert {Path(file).stem: reason for file, reason in scan_videos(tmp_path)[1].items()} == {
        "loop": loop,
        "one": loop,
        "other": loop,
        "zero": "not a file but a device",
        "pipe": pipe,
        "piped": pipe,
        "socket": "not a file but a socket",
    }


def test_names_up_to_the_limit_of_the_file_system_are_videos(tmp_path):
    names = ("v" * 251 + ".mp4", "v" * 252 + ".ts", "v{1}.mp4", "-x.mp4", "<b>x.mp4")
    for name in (*names, "a<results>.mp4", "3 < 4 > 1, <B>.mp4"):  # Snakemake leaves the last
        (tmp_path / name).touch()
    assert list(find_videos(tmp_path)) == ["-x", "3 < 4 > 1, <B>", "v" * 251]
    assert sorted(scan_videos(tmp_path)[1].values()) == [
        "Snakemake takes <b> for a path variable; rename the file",
        "Snakemake takes <results> for a path variable; rename the file",
        "Snakemake takes braces for a wildcard; rename the file",
        "the file's name is too long: at most 251 bytes and its suffix",
    ]


def test_a_missing_folder_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"none: not a folder of videos: No such file"):
        find_videos(tmp_path / "none")


def test_the_v_of_activitynet_may_be_there_or_not():
    assert other_names("abc") == ["v_abc"]
    assert other_names("v_abc") == ["v_v_abc", "abc"]  # v_abc may be the bare id of v_v_abc
    assert other_names("") == ["v_"]
    for name in ("abc", "v_abc", "v_v_abc", "vabc", "v_"):
        assert all(name in other_names(other) for other in other_names(name))
