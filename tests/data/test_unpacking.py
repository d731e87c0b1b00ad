"""Archives that lie about their sizes, and bombs: refused or read in part, at once, in little memory."""

import bz2
import gzip
import io
import lzma
import struct
import subprocess
import sys
import tarfile
import time
import zipfile

import pytest

from rankshot.data import trees, unpacking
from rankshot.data.trees import open_tree
from rankshot.data.unpacking import Unpacked

PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "plain": bytes}


def tar_of(*files, **headers):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", **headers) as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def found_in(path):
    tree = open_tree(path)
    return dict(tree.read(tree.names()))


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 100_000])
def test_every_packing(tmp_path, kind, size):
    files = [("a/1.png", bytes(range(256)) * (size // 256) + b"x" * (size % 256)), ("b/2.png", b"last")]
    (tmp_path / "t.tar").write_bytes(PACKED[kind](tar_of(*files)))
    assert found_in(tmp_path / "t.tar") == dict(files)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_several_streams_in_one_file(tmp_path, kind):
    whole = tar_of(("a.png", b"1" * 3000), ("b.png", b"2" * 3000))
    (tmp_path / "t").write_bytes(PACKED[kind](whole[:4000]) + PACKED[kind](whole[4000:]) + bytes(100))
    assert found_in(tmp_path / "t") == {"a.png": b"1" * 3000, "b.png": b"2" * 3000}


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_stream_that_is_cut(tmp_path, kind):
    content = PACKED[kind](tar_of(("a.png", bytes(range(256)) * 100), ("b.png", b"2")))
    (tmp_path / "t.tar").write_bytes(content[:-30])
    with pytest.raises(ValueError, match=r"damaged or cut short|neither a folder nor"):
        found_in(tmp_path / "t.tar")


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("size", [2**33 - 1, 2**60])
def test_a_header_that_claims_more_than_there_is(tmp_path, kind, size):
    """Of finding 5: it was read, and read, and never came to an end."""
    member = tarfile.TarInfo("a.png")
    member.size = size
    content = member.tobuf(tarfile.GNU_FORMAT) + b"x" * 2048 + bytes(1024)
    (tmp_path / "t.tar").write_bytes(PACKED[kind](content))
    began = time.monotonic()
    with pytest.raises(ValueError, match="damaged or cut short"):
        found_in(tmp_path / "t.tar")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", [b"x", b"L", b"K", b"g"])
def test_a_name_that_claims_to_be_huge(tmp_path, kind):
    member = tarfile.TarInfo("long")
    member.type, member.size = kind, 2**40
    (tmp_path / "t.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    with pytest.raises(ValueError, match="damaged or cut short"):
        found_in(tmp_path / "t.tar")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_bomb_stops_at_its_budget(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(unpacking, "SLACK", 2**20)
    (tmp_path / "t.tar").write_bytes(PACKED[kind](tar_of(("a.txt", bytes(2**24)))))
    with pytest.raises(ValueError, match="it unpacks to more than 100 times its size"):
        found_in(tmp_path / "t.tar")


def test_a_dictionary_of_gigabytes(tmp_path):
    """Of finding 5: lzma takes what a header asks for."""
    header = b"\x5d" + struct.pack("<L", 0xFFFFFFFF) + b"\xff" * 8
    (tmp_path / "t.tar").write_bytes(header + bytes(100))
    with pytest.raises(ValueError, match="neither a folder nor a zip or tar file"):
        open_tree(tmp_path / "t.tar")


def zip_of(path, *files, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in files:
            archive.writestr(name, data)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_packed_otherwise(tmp_path, method):
    """Of finding 5: 71 KB became 8 GiB in one step."""
    zip_of(tmp_path / "z.zip", ("a.png", bytes(5000)), compression=method)
    assert "only stored and deflated files are" in str(found_in(tmp_path / "z.zip")["a.png"])


@pytest.mark.parametrize("claimed", [1, 4999, 5001, 2**31])
def test_a_zip_that_lies_about_a_size(tmp_path, claimed):
    path = tmp_path / "z.zip"
    zip_of(path, ("a.png", b"y" * 5000), compression=zipfile.ZIP_DEFLATED)
    content = path.read_bytes().replace(struct.pack("<L", 5000), struct.pack("<L", claimed))
    path.write_bytes(content)
    if claimed == 2**31:
        with pytest.raises(ValueError, match="is refused: it unpacks to more than 100 times its size"):
            found_in(path)
        return
    (read,) = found_in(path).values()
    assert isinstance(read, OSError) or (claimed > 5000 and read == b"y" * 5000)


def test_a_zip_whose_sizes_add_up_to_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "SLACK", 2**20)
    zip_of(tmp_path / "z.zip", ("a.png", bytes(2**24)), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="is refused: it unpacks to more than 100 times its size"):
        open_tree(tmp_path / "z.zip")


def test_entries_that_share_their_bytes(tmp_path):
    path = tmp_path / "z.zip"
    zip_of(path, ("a.png", b"1" * 100), ("b.png", b"2" * 100))
    content = bytearray(path.read_bytes())
    second = content.rfind(b"PK\x01\x02")
    content[second + 42 : second + 46] = struct.pack("<L", 5)  # where its local header begins
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"overlaps with another one|damaged"):
        open_tree(path)


def test_an_encrypted_entry_and_one_without_a_name(tmp_path):
    path = tmp_path / "z.zip"
    zip_of(path, ("a.png", b"1"), ("b.png", b"2"))
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.find(mark) + offset] |= 1
    path.write_bytes(content)
    assert "it is encrypted" in str(found_in(path)["a.png"])
    zip_of(path, ("q.txt", b"1"), ("b.png", b"2"))
    path.write_bytes(path.read_bytes().replace(b"q.txt", b"\0.txt"))  # a name ends at a zero
    assert found_in(path)["b.png"] == b"2"


def test_too_many_files_for_one_zip(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MOST_DIRECTORY", 200)
    zip_of(tmp_path / "z.zip", *((f"{number}.png", b"") for number in range(9)))
    with pytest.raises(ValueError, match="holds more files than are read from one zip"):
        open_tree(tmp_path / "z.zip")


def test_what_is_no_plain_file(tmp_path):
    with pytest.raises(OSError, match="is no plain file"):
        open_tree(trees.Path("/dev/zero"))
    with (tmp_path / "sparse.tar").open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(ValueError, match="neither a folder nor a zip or tar file"):
        open_tree(tmp_path / "sparse.tar")


def test_read_forwards_and_back_by_one(tmp_path):
    content = bytes(range(256)) * 1000
    (tmp_path / "t.gz").write_bytes(gzip.compress(content))
    with Unpacked(tmp_path / "t.gz") as stream:
        assert stream.read(10) == content[:10]
        assert stream.seek(9) == 9
        assert stream.read(2) == content[9:11]
        assert stream.seek(200_000) == 200_000
        assert stream.read(3) == content[200_000:200_003]
        with pytest.raises(tarfile.ReadError, match="backwards"):
            stream.seek(5)
        with pytest.raises(tarfile.ReadError, match="more than any has"):
            stream.read(2**40)
        assert stream.seek(10**9) == len(content)
        assert stream.read(1) == b""


@pytest.mark.slow
def test_a_bomb_takes_little_memory(tmp_path):
    (tmp_path / "t.tar.xz").write_bytes(lzma.compress(tar_of(("a.png", bytes(2**28 + 1)), ("b.png", b"2")), preset=0))
    code = (
        "import sys, resource; from pathlib import Path; from rankshot.data.trees import open_tree\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "tree = open_tree(Path(sys.argv[1]))\n"
        "print({name: type(each).__name__ for name, each in tree.read(tree.names())})\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "t.tar.xz"], capture_output=True, text=True, check=True)
    found, more = done.stdout.splitlines()
    assert found == "{'a.png': 'Refused', 'b.png': 'bytes'}"  # too large, and what lies behind it
    assert int(more) < 2**17  # KiB


def with_holes(blocks):
    """The header of a file with holes, as GNU's tar had them at first, and blocks that tell where more of them are."""
    header = bytearray(tarfile.TarInfo("holes.png").tobuf(tarfile.GNU_FORMAT))
    header[156:157], header[482:483], header[483:495] = b"S", b"\1", b"00000000012\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    block = (b"00000000001\0" * 42 + b"\1").ljust(512, b"\0")
    return bytes(header) + block * (blocks - 1) + block[:504].ljust(512, b"\0")


def test_a_few_holes_are_told(tmp_path):
    (tmp_path / "t.tar").write_bytes(with_holes(3) + tar_of(("a.png", b"1")))
    tree = open_tree(tmp_path / "t.tar")
    assert dict(tree.read(tree.names())) == {"a.png": b"1"}
    assert tree.damaged == {"holes.png": "a file with holes, which is not read from a tar file"}


@pytest.mark.parametrize("end", [b"", bytes(1024)])
def test_a_map_of_a_million_holes(tmp_path, end):
    """It took 725 MiB and a minute for 2 MB, and ended in an IndexError."""
    (tmp_path / "t.tar.gz").write_bytes(gzip.compress(with_holes(50_000) + end, 1))
    began = time.monotonic()
    with pytest.raises(ValueError, match="damaged or cut short: a header claims more than any has"):
        found_in(tmp_path / "t.tar.gz")
    assert time.monotonic() - began < 2
