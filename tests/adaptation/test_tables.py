"""Vectors and labels from files: every kind, and everything that may be wrong with one."""

import io
import os
import pickle
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rankshot.adaptation.tables import LONGEST_LABEL, read_vectors

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)
LABELS = ["cat", "dog", "cat", "dog"]


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS)
    return tmp_path / "vectors.npy"


def written(path, content):
    (path.write_bytes if isinstance(content, bytes) else path.write_text)(content)
    return path


def table(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path


def lists(rows, kind=None):
    return pa.array(rows, kind or pa.list_(pa.float32()))


def raw_npy(shape, dtype, values=b""):
    """A header that claims anything."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + values


# What can be read


def test_npz_by_what_its_arrays_are(tmp_path):
    np.savez(tmp_path / "a.npz", emb=VECTORS, who=LABELS, shape=np.zeros(3), about=np.array("dino"))
    vectors, labels = read_vectors(tmp_path / "a.npz")
    assert (vectors == VECTORS).all()
    assert vectors.dtype == np.float32
    assert labels.tolist() == LABELS


def test_npz_by_name(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", one=VECTORS, two=2 * VECTORS, ids=np.arange(4), who=[7, 8, 7, 8])
    found = read_vectors(tmp_path / "a.npz", vectors_name="two", labels_name="who")
    assert (found.vectors == 2 * VECTORS).all()
    assert found.labels.tolist() == ["7", "8", "7", "8"]


def test_npz_with_ids_and_labels(tmp_path):
    np.savez(tmp_path / "a.npz", x=VECTORS, ids=np.arange(4), labels=LABELS)
    assert read_vectors(str(tmp_path / "a.npz")).labels.tolist() == LABELS


def test_npz_with_labels_elsewhere(tmp_path):
    np.savez(tmp_path / "a.npz", x=VECTORS, ids=np.arange(4))
    assert read_vectors(tmp_path / "a.npz", written(tmp_path / "l.txt", "a\nb\na\nb\n")).labels.tolist() == list("abab")


def test_npy_is_mapped(npy, tmp_path):
    found = read_vectors(npy, written(tmp_path / "l.csv", "label\ncat\ndog\ncat\ndog\n"))
    assert isinstance(found.vectors, np.memmap)
    assert not found.vectors.flags.writeable
    assert (found.vectors == VECTORS).all()
    assert found.labels.tolist() == LABELS


def test_a_link_that_a_person_names(npy, tmp_path):
    os.symlink(npy, tmp_path / "link.npy")
    assert len(read_vectors(tmp_path / "link.npy", written(tmp_path / "l.txt", "a\nb\na\nb")).vectors) == 4


@pytest.mark.parametrize(
    ("given", "precision"),
    [
        ("f2", "float32"),
        (">f4", "float32"),
        ("f8", "float64"),
        ("g", "float64"),
        ("u1", "float32"),
        ("i2", "float32"),
        ("i8", "float64"),
    ],
)
def test_precisions(tmp_path, given, precision):
    np.save(tmp_path / "a.npy", VECTORS.astype(given))
    found = read_vectors(tmp_path / "a.npy", written(tmp_path / "l.txt", "a\nb\na\nb\n"))
    assert found.vectors.dtype == np.dtype(precision)
    assert (found.vectors == VECTORS).all()


@pytest.mark.parametrize(
    ("content", "name", "labels"),
    [
        ("label\na\nb\na\nb\n", None, ["a", "b", "a", "b"]),
        ("whatever\na\nb\na\nb", None, ["a", "b", "a", "b"]),
        ("id,label\n1,a\n2,b\n3,a\n4,b\n", None, ["a", "b", "a", "b"]),
        ("id,y\n1,a\n2,b\n3,a\n4,b\n", None, ["a", "b", "a", "b"]),
        ("id;class\r\n1;a\r\n2;b\r\n3;a\r\n4;b\r\n", None, ["a", "b", "a", "b"]),
        ("\ufeffid\tlabel\n1\ta\n2\tb\n3\ta\n4\tb\n", None, ["a", "b", "a", "b"]),
        ("id,label,kind\n1,a,u\n2,b,v\n3,a,w\n4,b,\n", "kind", ["u", "v", "w", None]),
        ("id,label\n1,a\n2,\n3,a\n4, b \n\n\n", None, ["a", None, "a", "b"]),
        ('id,label\n1,"a, or\nso"\n2,b\n3,a\n4,b\n', None, ["a, or\nso", "b", "a", "b"]),
        ("label\na\n\na\nb\n\n", None, ["a", None, "a", "b"]),
        ("label\na\nb\na\n\n", None, ["a", "b", "a", None]),
    ],
)
def test_csv(npy, tmp_path, content, name, labels):
    path = written(tmp_path / "l.CSV", content.encode())
    assert read_vectors(npy, path, labels_name=name).labels.tolist() == labels


def test_txt(npy, tmp_path):
    path = written(tmp_path / "l.txt", "a\u2028x\r\n\r\n b \r\na\r\n\r\n".encode())
    assert read_vectors(npy, path).labels.tolist() == ["a\u2028x", None, "b", "a"]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["a", "b", "", "é"], ["a", "b", None, "é"]),
        ([b"a", b"b", b"", b"b"], ["a", "b", None, "b"]),
        ([3, 4, 3, -1], ["3", "4", "3", "-1"]),
        ([[3], [4], [3], [4]], ["3", "4", "3", "4"]),
        ([3.0, 4.0, np.nan, 4.0], ["3", "4", None, "4"]),
        ([True, False, True, False], ["True", "False", "True", "False"]),
    ],
)
def test_labels_in_npy(npy, tmp_path, labels, found):
    np.save(tmp_path / "l.npy", labels)
    assert read_vectors(npy, tmp_path / "l.npy").labels.tolist() == found


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float32(), 3),
        pa.large_list(pa.float64()),
        pa.list_(pa.int16()),
        pa.list_(pa.float16()),
    ],
    ids=str,
)
def test_parquet_with_lists(tmp_path, kind):
    rows = (
        [[np.float16(value) for value in row] for row in VECTORS] if kind.value_type == pa.float16() else VECTORS.tolist()
    )
    path = table(tmp_path / "a.parquet", id=[1, 2, 3, 4], v=pa.array(rows, kind), label=["a", None, "", "b"])
    vectors, labels = read_vectors(path)
    assert (vectors == VECTORS).all()
    assert vectors.dtype in (np.float32, np.float64)
    assert labels.tolist() == ["a", None, None, "b"]


def test_parquet_with_columns(tmp_path):
    path = table(
        tmp_path / "a.parquet",
        name=LABELS,
        e_0=pa.array(VECTORS[:, 0]),
        e_1=pa.array(VECTORS[:, 1]),
        e_2=pa.array(VECTORS[:, 2].astype(int)),
        e_y=[1, 2, 1, 2],
    )
    vectors, labels = read_vectors(path, vectors_name="e_", labels_name="e_y")
    assert (vectors == VECTORS).all()
    assert labels.tolist() == ["1", "2", "1", "2"]
    assert read_vectors(path, vectors_name="e_1", labels_name="name").vectors[:, 0].tolist() == VECTORS[:, 1].tolist()


def test_parquet_of_many_rows_and_groups(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(10_000, 5))
    labels = pa.array([f"class {row % 7}" for row in range(10_000)]).dictionary_encode()
    content = pa.table({"v": pa.array(list(vectors), pa.list_(pa.float64(), 5)), "class": labels})
    parquet.write_table(content, tmp_path / "a.parquet", row_group_size=3000)
    found = read_vectors(tmp_path / "a.parquet")
    assert (found.vectors == vectors).all()
    assert found.labels[9999] == "class 3"


def test_parquet_with_labels_elsewhere(tmp_path):
    path = table(tmp_path / "a.parquet", v=lists(VECTORS.tolist()))
    assert read_vectors(path, written(tmp_path / "l.txt", "a\nb\na\nb\n")).labels.tolist() == list("abab")


# What is wrong with a file


def refused(match, *arguments, **names):
    with pytest.raises(ValueError, match=match) as caught:
        read_vectors(*arguments, **names)
    assert len(str(caught.value)) < 4000
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet"])
@pytest.mark.parametrize(
    "content",
    [
        b"no such file at all",
        b"PK\x03\x04 and no more",
        b"\x93NUMPY\x01\x00",
        b"PAR1PAR1",
        pickle.dumps([1, 2]),
        bytes(5000),
    ],
    ids=range(6),
)
def test_not_what_its_suffix_says(tmp_path, suffix, content):
    labels = written(tmp_path / "l.txt", "a\n")
    refused(rf"a{suffix} cannot be read as an? {suffix} file: .", written(tmp_path / f"a{suffix}", content), labels)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet"])
def test_cut_short(tmp_path, suffix):
    whole = tmp_path / f"whole{suffix}"
    {
        ".npz": lambda: np.savez(whole, x=VECTORS, y=LABELS),
        ".npy": lambda: np.save(whole, VECTORS),
        ".parquet": lambda: table(whole, v=lists(VECTORS.tolist()), y=LABELS),
    }[suffix]()
    content, labels = whole.read_bytes(), written(tmp_path / "l.txt", "a\nb\na\nb\n")
    for length in range(1, len(content), max(1, len(content) // 40)):
        refused("part.* cannot be read as", written(tmp_path / f"part{suffix}", content[:length]), labels)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet"])
def test_any_damaged_byte_is_told_or_does_no_harm(tmp_path, suffix):
    whole = tmp_path / f"whole{suffix}"
    {
        ".npz": lambda: np.savez_compressed(whole, x=VECTORS, y=LABELS),
        ".npy": lambda: np.save(whole, VECTORS),
        ".parquet": lambda: table(whole, v=lists(VECTORS.tolist()), y=LABELS),
    }[suffix]()
    content, labels = whole.read_bytes(), written(tmp_path / "l.txt", "a\nb\na\nb\n")
    generator = np.random.default_rng(0)
    for place in generator.integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[place] ^= int(generator.integers(1, 256))
        path = written(tmp_path / f"damaged{suffix}", bytes(damaged))
        for more in ((labels,), ()):
            told = str(path)
            try:
                read_vectors(path, *more)
            except MemoryError:
                pass
            except ValueError as error:
                told = str(error)
            assert str(path) in told


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.parquet"])
def test_empty_files(tmp_path, name):
    refused(f"{name} is empty", written(tmp_path / name, b""), tmp_path / "l.txt")


@pytest.mark.parametrize("name", ["l.csv", "l.npy", "l.txt"])
def test_empty_labels(npy, tmp_path, name):
    refused(f"{name} is empty", npy, written(tmp_path / name, b""))


def test_other_kinds_of_files(npy, tmp_path):
    refused(r"a.pkl: vectors are read from .npz, .npy or .parquet", tmp_path / "a.pkl")
    refused(r"l.xlsx: labels are read from .csv, .npy or .txt", npy, tmp_path / "l.xlsx")
    refused(r"vectors: vectors are read from", tmp_path / "vectors")


def test_what_is_no_plain_file(npy, tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "folder.npz").mkdir()
    for path, why in (("pipe.npy", "is no plain file"), ("folder.npz", "is a folder"), ("none.parquet", "No such file")):
        with pytest.raises(OSError, match=why):
            read_vectors(tmp_path / path, npy)
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_vectors(npy, tmp_path / "none.csv")


def test_python_objects_are_never_loaded(npy, tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    objects = np.empty(4, dtype=object)
    objects[:] = [Trap() for _ in range(4)]
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "o.npz", x=VECTORS, y=objects)
    refused(r"o.npy holds Python objects, which are never loaded", npy, tmp_path / "o.npy")
    refused(r"o.npz, 'y' holds Python objects, which are never loaded", tmp_path / "o.npz")


def test_an_npz_that_is_not_unique(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, one=VECTORS, two=VECTORS, y=LABELS)
    refused(
        r"holds one \(4, 3\) float32, two \(4, 3\) float32, y \(4,\) <U3: vectors are .* here are 2: name the one", path
    )
    np.savez(path, x=VECTORS.astype(int), y=LABELS)
    refused(r"vectors are an array \(rows, dimensions\) of floats, and here is none", path)
    np.savez(path, x=VECTORS, a=LABELS, b=LABELS)
    refused(r"labels are an array \(4,\), and here is none: name the one", path)
    np.savez(path, x=VECTORS, label=LABELS, y=LABELS)
    refused(r"labels are an array \(4,\), and here are 2", path)
    np.savez(path, x=VECTORS)
    refused(r"labels are an array \(4,\), and here is none", path)


def test_names_that_are_not_in_an_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x=VECTORS, y=LABELS)
    refused(r"holds x .*, y .*: there is no 'z'", tmp_path / "a.npz", vectors_name="z")
    refused(r"and none is 'z'", tmp_path / "a.npz", labels_name="z")
    refused(r"'y' should be \(rows, dimensions\)", tmp_path / "a.npz", vectors_name="y")


def test_a_zip_without_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused("a.npz holds nothing: ", tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", **{f"array_{'x' * 200}_{number}": VECTORS for number in range(50)})
    refused("30 more", tmp_path / "a.npz")


def test_an_npy_has_no_names_and_no_labels(npy, tmp_path):
    refused(r"vectors.npy holds vectors alone: name a file of their labels, .csv, .npy or .txt", npy)
    refused(r"vectors.npy holds one array, which has no name: 'x'", npy, tmp_path / "l.txt", vectors_name="x")
    refused(r"l.txt has no columns: 'x'", npy, written(tmp_path / "l.txt", "a\n"), labels_name="x")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.zeros(4), r"\(4,\): vectors are \(rows, dimensions\)"),
        (np.zeros((4, 3, 2)), r"\(4, 3, 2\): vectors are"),
        (np.zeros((0, 3)), r"0 vectors of 3 dimensions: it is empty"),
        (np.zeros((4, 0)), r"4 vectors of 0 dimensions: it is empty"),
        (np.full((4, 3), "1.5"), r"holds <U3, where numbers should be"),
        (np.zeros((4, 3), complex), r"holds complex128, where numbers should be"),
        (np.zeros((4, 3), bool), r"holds bool, where numbers should be"),
        (np.array([[1.0], [2.0], [np.nan], [4.0]]), r"row 2 holds values that are no finite numbers"),
        (np.array([[1.0], [np.inf]]), r"row 1 holds"),
        (np.zeros(4, [("a", "f4")]), r"vectors are \(rows, dimensions\)"),
    ],
)
def test_what_are_no_vectors(tmp_path, array, match):
    np.save(tmp_path / "a.npy", array)
    refused(match, tmp_path / "a.npy", written(tmp_path / "l.txt", "a\nb\na\nb\n"))


def test_headers_that_lie(tmp_path):
    labels = written(tmp_path / "l.txt", "a\n")
    for shape in ((10**12, 10**3), (10**30, 2), (-1, 3)):
        path = written(tmp_path / "a.npy", raw_npy(shape, "<f4", VECTORS.tobytes()))
        with pytest.raises((ValueError, MemoryError)):
            read_vectors(path, labels)
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x.npy", path.read_bytes())
        with pytest.raises((ValueError, MemoryError)):
            read_vectors(tmp_path / "a.npz", labels)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("l.csv", "id,name\n1,a\n", r"l.csv has the columns id, name: labels are one of them, and here is none: name"),
        ("l.csv", "label,y\n1,a\n", r"and here are 2"),
        ("l.csv", "label,label\n1,a\n", r"and here are 2"),
        ("l.csv", "\n", r"has the columns nothing"),
        ("l.csv", "id,label\n1,a\n2\n3,a\n4,b\n", r"l.csv, line 3: 1 cell, and 2 columns"),
        ("l.csv", "id,label\n1,a\n\n3,a\n4,b\n", r"l.csv, line 3: 0 cells, and 2 columns"),
        ("l.csv", "label\na,b\nb\na\nb\n", r"l.csv, line 2: 2 cells, and 1 column|3 labels"),
        ("l.csv", 'label\n"a\nb\n', r"l.csv cannot be read as a .csv file"),
        ("l.csv", 'label\n"a"b\n', r"l.csv cannot be read as a .csv file"),
        ("l.csv", "label\na\nb\n", r"l.csv has 2 labels, and .*vectors.npy 4 vectors: one each is right"),
        ("l.csv", "label\na\nb\na\nb\na\n", r"l.csv has 5 labels"),
        ("l.csv", "label\n\n\n\n\n", r"l.csv: all labels are empty"),
        ("l.txt", "a\n", r"l.txt has 1 label, and"),
        ("l.txt", b"\xff\xfea\n", r"l.txt is not UTF-8"),
        ("l.txt", f"a\nb\na\n{'x' * 300}\n", rf"label of row 3 has 300 characters: {LONGEST_LABEL} at most"),
    ],
)
def test_what_are_no_labels(npy, tmp_path, name, content, match):
    refused(match, npy, written(tmp_path / name, content))


def test_columns_that_are_not_in_a_csv(npy, tmp_path):
    refused(r"columns id, y: .* none is 'kind'", npy, written(tmp_path / "l.csv", "id,y\n"), labels_name="kind")
    refused(r"'y' is there more than once", npy, written(tmp_path / "l.csv", "y,y\n"), labels_name="y")


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ([0.5, 1, 2, 3], r"label of row 0 is 0.5: a label is a text or a whole number"),
        ([np.inf, 1, 2, 3], r"label of row 0 is inf"),
        ([1j, 1, 2, 3], r"is of type complex: a label is a text or a whole number"),
        (np.zeros((4, 2)), r"holds an array \(4, 2\): labels are \(rows,\)"),
        ([b"\xff", b"a", b"b", b"c"], r"label of row 0 is not UTF-8"),
        (np.zeros(4, "M8[s]"), r"is of type datetime: a label"),
    ],
)
def test_arrays_that_are_no_labels(npy, tmp_path, labels, match):
    np.save(tmp_path / "l.npy", labels)
    refused(match, npy, tmp_path / "l.npy")


FOUR = VECTORS.tolist()


@pytest.mark.parametrize(
    ("columns", "names", "match"),
    [
        ({"v": lists(FOUR), "w": lists(FOUR), "y": LABELS}, {}, r"columns v \(list<.*\), w .*: vectors are .* here are 2"),
        ({"a": [1.0] * 4, "y": LABELS}, {}, r"here is none: name the one .* name what those begin with"),
        ({"v": lists(FOUR)}, {}, r"columns v .*: labels are one of them, and here is none"),
        ({"v": lists(FOUR), "y": LABELS}, {"labels_name": "kind"}, r"and none is 'kind'"),
        ({"v": lists(FOUR), "y": LABELS}, {"vectors_name": "w"}, r"none is 'w', or begins with it"),
        ({"v": lists(FOUR), "y": LABELS, "t": LABELS}, {"vectors_name": "t"}, r"'t' holds string, where numbers should be"),
        ({"e_0": [1.0] * 4, "e_model": LABELS, "y": LABELS}, {"vectors_name": "e_"}, r"'e_model' holds string, where"),
        ({"v": [LABELS] * 4, "y": LABELS}, {"vectors_name": "v"}, r"'v' holds lists of string, where numbers should be"),
        ({"v": lists([[1, 2], [1], [1], [2]]), "y": LABELS}, {}, r"'v': row 1 has 1 value, the one before 2: all vectors"),
        ({"v": lists([[1], None, [1], [2]]), "y": LABELS}, {}, r"'v': row 1 has no vector"),
        ({"v": lists([[1, 2], [1, 2], [1, None], [2, 1]]), "y": LABELS}, {}, r"'v': row 2 has an empty value"),
        ({"v": lists([[1, 2], [1, 2], [1, np.nan], [2, 1]]), "y": LABELS}, {}, r"row 2 holds values that are no finite"),
        ({"v": lists([[], [], [], []]), "y": LABELS}, {}, r"4 vectors of 0 dimensions: it is empty"),
        ({"e0": [1.0, None, 1.0, 1.0], "y": LABELS}, {"vectors_name": "e"}, r"'e0': row 1 is empty"),
        ({"v": lists([]), "y": pa.array([], pa.string())}, {}, r"a.parquet has no rows"),
        ({"v": lists(FOUR), "y": lists(FOUR)}, {"vectors_name": "v"}, r"label of row 0 is of type list"),
    ],
)
def test_tables_that_hold_something_else(tmp_path, columns, names, match):
    refused(match, table(tmp_path / "a.parquet", **columns), **names)


def test_lists_that_grow_after_thousands_of_rows(tmp_path):
    rows = [[1.0, 2.0]] * 4096 + [[1.0, 2.0, 3.0]]
    refused("'v': row 4096 has 3 values", table(tmp_path / "a.parquet", v=lists(rows), y=["a"] * len(rows)))


def test_a_column_twice(tmp_path):
    content = pa.Table.from_arrays([lists(FOUR), pa.array(LABELS), pa.array(LABELS)], ["v", "y", "y"])
    parquet.write_table(content, tmp_path / "a.parquet")
    refused("one of them is there more than once", tmp_path / "a.parquet")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = table(tmp_path / "a.parquet", v=lists(FOUR), y=LABELS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"a.parquet needs pyarrow, which is not here: pip install 'rankshot\[parquet\]'"):
        read_vectors(path)
