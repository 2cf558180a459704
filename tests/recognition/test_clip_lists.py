"""Folders of trimmed clips in each form, held-out groups, and the split files of UCF101, HMDB51."""

import subprocess
import sys

import pytest

from actionspan.errors import InputError
from actionspan.recognition.clip_lists import excluded_files, group_of, list_clips


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        for name in names:
            path = tmp_path / "clips" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / "clips"

    return make


@pytest.fixture
def splits(tmp_path):
    def make(**files):
        (tmp_path / "splits").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / "splits" / f"{name}.txt").write_text(text)
        return tmp_path / "splits"

    return make


def rows(clips):
    return [(clip.clip_id, clip.label, clip.subset) for clip in clips]


def test_subset_folders_are_taken_as_they_are(folder):
    files = ("training/fight/a.mp4", "training/calm/b.avi", "validation/fight/a.mp4")
    root = folder(*files, "training/notes.txt")
    clips = list_clips(root)
    assert rows(clips) == [
        ("training.calm.b", "calm", "training"),
        ("training.fight.a", "fight", "training"),
        ("validation.fight.a", "fight", "validation"),
    ]
    assert clips[0].path == root / "training/calm/b.avi"


def test_without_a_folder_validation_groups_are_held_out(folder):
    root = folder(*(f"training/run/{n}.mp4" for n in range(8)), "testing/run/x.mp4")
    subsets = [clip.subset for clip in list_clips(root, fraction=0.25)]
    assert sorted(subsets) == ["testing"] + ["training"] * 6 + ["validation"] * 2


@pytest.mark.parametrize(("fraction", "held"), [(0.0, 0), (0.04, 1), (0.28, 7), (0.99, 24)])
def test_groups_are_held_out_whole_in_every_class(folder, fraction, held):
    labels, groups, numbers = ("Archery", "Diving"), range(1, 26), (1, 2, 3)
    names = [(label, group, clip) for label in labels for group in groups for clip in numbers]
    root = folder(*(f"{each[0]}/v_{each[0]}_g{each[1]:02d}_c{each[2]:02d}.avi" for each in names))
    clips = list_clips(root, fraction=fraction)
    assert len(clips) == 150
    assert clips == list_clips(root, fraction=fraction)
    for label in labels:
        own = {(group_of(each.path.stem), each.subset) for each in clips if each.label == label}
        assert len(own) == 25
        assert sum(subset == "validation" for _, subset in own) == held


@pytest.mark.parametrize(
    ("stem", "group"),
    [
        ("v_Archery_g01_c02", "v_Archery_g01"),
        ("v_CricketShot_g04_c01", "v_CricketShot_g04"),
        ("v_biking_01_02", "v_biking_01"),
        ("fi127", "fi127"),
        ("KOREAN_TEA_CEREMONY_pour_u_nm_np1_fr_med_0",) * 2,
    ],
)
def test_groups_are_known_by_ucfs_names(stem, group):
    assert group_of(stem) == group


UCF = {
    "classInd": "1 Run\n2 Jump\n",
    "trainlist01": "Run/v_Run_g01_c01.avi 1\nJump/v_Jump_g02_c01.avi 2\n",
    "testlist01": "Run/v_Run_g02_c01.avi\n\nJump/v_Jump_g01_c01.avi\n",
    "trainlist02": "Run/v_Run_g02_c01.avi 1\n",
    "testlist02": "Run/v_Run_g01_c01.avi 1\n",
}
UCF_CLIPS = (
    *("Run/v_Run_g01_c01.avi", "Run/v_Run_g02_c01.mp4"),
    *("Jump/v_Jump_g01_c01.avi", "Jump/v_Jump_g02_c01.avi", "Jump/unlisted.avi"),
    "lists/readme.txt",
)


def test_ucf101_splits(folder, splits):
    root, files = folder(*UCF_CLIPS), splits(**UCF)
    assert rows(list_clips(root, files, 1)) == [
        ("Jump.v_Jump_g01_c01", "Jump", "validation"),
        ("Jump.v_Jump_g02_c01", "Jump", "training"),
        ("Run.v_Run_g01_c01", "Run", "training"),
        ("Run.v_Run_g02_c01", "Run", "validation"),
    ]
    assert rows(list_clips(root, files, 2)) == [
        ("Run.v_Run_g01_c01", "Run", "validation"),
        ("Run.v_Run_g02_c01", "Run", "training"),
    ]


def test_hmdb51_splits(folder, splits):
    root = folder("pour/A#1_pour (x).avi", "pour/b.avi", "pour/c.avi", "kick_ball/b.avi")
    files = splits(
        pour_test_split1="A#1_pour (x).avi 1 \nb.avi 2 \nc.avi 0 \n",
        pour_test_split2="b.avi 1 \nc.avi 2 \n",
        kick_ball_test_split1="b.avi 1 \n",
    )
    assert rows(list_clips(root, files, 1)) == [
        ("kick_ball.b", "kick_ball", "training"),
        ("pour.A#1_pour (x)", "pour", "training"),
        ("pour.b", "pour", "validation"),
    ]
    assert [clip.path.name for clip in list_clips(root, files, 2)] == ["b.avi", "c.avi"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"testlist01": "Run/v_Run_g01_c01.avi\n"},
         "testlist01.txt: row 1: Run/v_Run_g01_c01.avi is in .*trainlist01.txt: row 1 too"),
        ({"testlist01": "\nRun/gone.avi\n"}, "t01.txt: row 2: Run/gone: no such clip in .*clips"),
        ({"testlist01": "v_Run_g01_c01.avi\n"}, "row 1: 'v_Run_.*' is not Class/clip.avi"),
        ({"testlist01": "Run/a.avi 1 2\n"}, "row 1: 'Run/a.avi 1 2' is not Class/clip.avi"),
        ({"testlist01": "Walk/a.avi\n"}, "row 1: class Walk is not in .*classInd.txt"),
        ({"testlist01": "Run/v_Run_g02_c01.avi 2\n"}, "row 1: class Run is 1 in .*classInd.txt"),
        ({"testlist01": "\n"}, "splits: split 1 has no validation clip"),
        ({"classInd": "one Run\n"}, "classInd.txt: row 1: 'one Run' is not a number and a class"),
        ({"classInd": "1 Run\n2 Jump\n3 Walk\n", "testlist01": "Walk/a.avi\n"},
         "testlist01.txt: row 1: class Walk: no such folder in .*clips"),
    ],
)  # fmt: skip
def test_mistakes_in_ucf101s_files_name_file_and_row(folder, splits, change, words):
    with pytest.raises(InputError, match=rf"^[^\n]*{words}[^\n]*\Z"):
        list_clips(folder(*UCF_CLIPS), splits(**{**UCF, **change}))


def test_half_a_split_is_refused(folder, splits, tmp_path):
    root, files = folder(*UCF_CLIPS), splits(**UCF)
    (files / "testlist02.txt").unlink()
    for given, words in (
        ((files, 2), "testlist02.txt: no such file"),
        ((files, 3), "splits: no files of split 3; expected trainlist03.txt"),
        ((tmp_path / "nowhere",), "nowhere: no such folder of split files"),
    ):
        with pytest.raises(InputError, match=words):
            list_clips(root, *given)


def test_split_files_for_a_divided_folder_are_refused(folder, splits):
    with pytest.raises(InputError, match="divided into training, validation: leave the split"):
        list_clips(folder("training/a/x.avi", "validation/a/y.avi"), splits(**UCF))


@pytest.mark.parametrize("line", ["b.avi", "b.avi 3", "1"])
def test_mistakes_in_hmdb51s_files_name_file_and_row(folder, splits, line):
    files = splits(pour_test_split1=f"a.avi 1\n{line}\n")
    with pytest.raises(InputError, match=f"split1.txt: row 2: '{line}' is not clip.avi and 0, 1"):
        list_clips(folder("pour/a.avi"), files)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "clips: not a folder of clips: No such file"),
        (["readme.txt"], "clips: no folder of a class; expected CLASS/clip.avi"),
        (["run/readme.txt"], "clips/run: no video; expected CLASS"),
        (["train/run/a.avi", "test/run/b.avi"], "clips/test: no video; expected CLASS"),
        (["validation/run/a.avi"], "clips: no folder training; expected"),
        (["training/readme.txt"], "clips/training: no folder of a class"),
        ([f"run/{'x' * 240}.avi"], "longer than 240 bytes; rename it"),
        (["ru\nn/a.avi"], r"clips/ru\\nn/a.avi: the name of the class is not UTF-8 or holds"),
    ],
)
def test_folders_of_no_form_are_refused(folder, tmp_path, names, words):
    folder(*names)
    with pytest.raises(InputError, match=rf"^[^\n]*{words}[^\n]*\Z"):
        list_clips(tmp_path / "clips")


def test_files_that_are_passed_over_have_a_reason(folder):
    root = folder("training/run/a.mp4", "training/run/a.avi", "training/run/b\n.avi")
    assert [clip.path.name for clip in list_clips(root)] == ["a.avi"]
    same = "a.avi has the same name, which is the id of a video; rename one of the two"
    assert sorted(excluded_files(root).values())[0] == same
    assert len(excluded_files(root)) == 2


def test_listing_imports_only_the_standard_library():
    code = (
        "import sys\nfrom actionspan.recognition import clip_lists\n"
        "heavy = {'numpy', 'h5py', 'cv2', 'torch', 'av'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("place", "count", "classes", "subsets"),
    [
        # one group a class: nothing can be held out
        ("clips/ucf_hmdb_clips", 21, 9, {"training"}),
        ("fights/trimmed", 210, 2, {"training", "validation"}),
    ],
)
def test_real_clips(shared_data, place, count, classes, subsets):
    clips = list_clips(shared_data / place)
    assert len(clips) == count
    assert len({clip.label for clip in clips}) == classes
    assert {clip.subset for clip in clips} == subsets
