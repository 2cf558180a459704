"""Fingerprints: the same for the same bytes, whoever counts them, and for no others."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from actionspan.storage.checksums import Growing, fingerprint


def test_it_is_what_another_program_says(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 9001)  # more than two blocks
    run = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True)
    assert fingerprint(path) == f"{256 * 9001} {run.stdout.split()[0]}"


def test_a_missing_file_has_none(tmp_path):
    assert fingerprint(tmp_path / "none") is None


@given(pieces=st.lists(st.binary(max_size=40), max_size=8), after=st.binary(max_size=9))
def test_a_growing_file_has_that_of_its_bytes(tmp_path_factory, pieces, after):
    path = tmp_path_factory.getbasetemp() / "growing"
    growing, whole = Growing(), b"".join(pieces)
    for piece in pieces:
        growing.add(piece)
    path.write_bytes(whole)
    assert fingerprint(path) == str(growing)
    path.write_bytes(whole + after)
    assert str(Growing(path, len(whole))) == str(growing)
    assert (fingerprint(path) == str(growing)) == (not after)
    path.write_bytes(whole[: len(whole) // 2])
    assert (str(Growing(path, len(whole))) == str(growing)) == (not whole)
