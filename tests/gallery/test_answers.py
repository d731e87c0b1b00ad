"""How often it was right is counted by the names of folders, where they tell."""

from rankshot.gallery.answers import Tally


def tallied(answers, **options):
    tally = Tally(["apple", "pear", "plum"], **options)
    for image, answer in answers:
        tally.add(image, answer)
    return tally.lines()


def test_a_line_for_each_class_that_has_images():
    answers = [("a/apple/1.jpg", "apple"), ("a/apple/2.jpg", "plum"), ("apple/3.jpg", "pear"), ("apple/4.jpg", "plum")]
    assert tallied([*answers, ("x/pear/1.jpg", "pear")]) == [
        "accuracy 40.0 %: 2 of the 5 images in folders that are named as classes",
        "  class  images  right  most often taken for",
        "  apple       4      1  plum (2)",
        "  pear        1      1",
    ]


def test_none_of_these_counts_apart():
    answers = [("apple/1.jpg", "apple"), ("apple/2.jpg", "?"), ("apple/3.jpg", "?"), ("apple/4.jpg", "pear")]
    assert tallied(answers, unknown="?") == [
        "accuracy 25.0 %: 1 of the 4 images in folders that are named as classes",
        "2 of them were answered '?': of the other 2, 50.0 % are right",
        "  class  images  right  unknown  most often taken for",
        "  apple       4      1        2  pear (1)",
    ]


def test_strangers_in_a_folder_of_their_own():
    answers = [("apple/1.jpg", "apple"), ("?/1.jpg", "?"), ("?/2.jpg", "?"), ("?/3.jpg", "plum"), ("apple/2.jpg", "plum")]
    assert tallied(answers, unknown="?") == [
        "accuracy 60.0 %: 3 of the 5 images in folders that are named as classes",
        "2 of them were answered '?': of the other 3, 33.3 % are right",
        "  class  images  right  unknown  most often taken for",
        "  apple       2      1        0  plum (1)",
        "  ?           3      2        2  plum (1)",
    ]


def test_folders_that_tell_nothing():
    assert tallied([]) == []
    assert tallied([("new/1.jpg", "apple"), ("1.jpg", "pear")]) == []
    half = [("apple/1.jpg", "apple"), ("new/1.jpg", "apple")]
    assert tallied(half) == []
    assert tallied([*half, ("apple/2.jpg", "apple")])[1] == "not counted, since they lie elsewhere: 1"


def test_examples_that_are_asked_about_themselves():
    lines = tallied([("apple/1.jpg", "apple"), ("apple/2.jpg", "apple")], taught=["apple/1.jpg", "pear/1.jpg"])
    assert lines[1] == "examples that it was taught with, among those counted: 1"


def test_names_that_a_terminal_would_obey():
    tally = Tally(["\x1b[31m", "x"])
    tally.add("\x1b[31m/1.jpg", "x")
    assert tally.lines()[-1] == "  \\x1b[31m       1      0  x (1)"
