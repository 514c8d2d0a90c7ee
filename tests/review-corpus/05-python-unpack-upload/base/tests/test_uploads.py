import io
import tarfile

import pytest

from app.uploads import Refused, unpack


def archive(path, names):
    with tarfile.open(path, "w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"ok"))
    return path


def test_files_are_unpacked(tmp_path):
    made = archive(tmp_path / "a.tar", ["one.txt", "sub/two.txt"])
    files = unpack(made, tmp_path / "out")
    assert [file.name for file in files] == ["one.txt", "two.txt"]
    assert files[0].read_bytes() == b"ok"


def test_nothing_leaves_the_folder(tmp_path):
    made = archive(tmp_path / "a.tar", ["../evil.txt"])
    with pytest.raises(Refused):
        unpack(made, tmp_path / "out")
    assert not (tmp_path / "evil.txt").exists()
