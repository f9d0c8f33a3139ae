"""Sources alone: what a folder leaves out is counted and named, and causes a warning."""

from __future__ import annotations

import shutil
import warnings

import pytest

import stoker


def test_left_out_files_are_named(pictures, tmp_path):
    root = tmp_path / "data"
    shutil.copytree(pictures, root)
    (root / "class_0" / "b.gif").write_bytes(b"GIF89a")
    (root / "class_1" / "a.gif").write_bytes(b"GIF89a")
    (root / "class_2" / "again").symlink_to(root / "class_1")  # this lists its .gif twice
    with pytest.warns(UserWarning, match=r"3 \.gif files are left out \(not read: GIF\)") as found:
        source = stoker.folder(root)
    assert len(found) == len(source.notes) == 2
    assert source.notes[0] == "3 .gif files are left out (not read: GIF), as class_0/b.gif"
    assert "files have two labels, as class_1/" in source.notes[1]
    assert stoker.relabel(source, [0] * len(source)).notes == source.notes


def test_a_clean_folder_has_no_notes(pictures):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stoker.folder(pictures).notes == []
