"""What was taught: acknowledged is on the disk, undone is as before, and one server at a time."""

import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rankshot.gallery.store import Damaged
from rankshot.serve import workspace
from rankshot.serve.workspace import Conflict, Picture, Refused, Unknown, Workspace


def never(pictures):
    raise AssertionError("nothing is to be embedded again")


def opened(folder, network="a", embed=never):
    return Workspace(folder, network, embed)


def picture(number=0):
    return Picture(f"file {number}".encode(), f"{number}.png", np.full(3, number, np.float32))


def names(some):
    return {each.name: [name for _, name in each.examples] for each in some.classes()[1]}


def test_what_was_taught_is_there_again(tmp_path):
    with opened(tmp_path / "w") as some:
        cat, dog = some.add_class("cat"), some.add_class(" dog ")
        ids = some.add_examples(cat, [picture(1), picture(2)])
        some.add_examples(dog, [picture(3)])
        some.rename_class(dog, "hound")
        some.remove_example(ids[0])
    with opened(tmp_path / "w") as some:
        assert names(some) == {"cat": ["2.png"], "hound": ["3.png"]}
        revision, examples = some.examples()
        assert revision == some.revision == 6
        assert [(each.class_id, each.vector.tolist()) for each in examples] == [(cat, [2.0] * 3), (dog, [3.0] * 3)]
        assert some.picture(ids[1]) == b"file 2"
        with pytest.raises(Unknown, match="no such example"):
            some.picture(ids[0])


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "line\nbreak", "\x00"])
def test_names_that_are_none(tmp_path, name):
    with opened(tmp_path) as some:
        with pytest.raises(Refused, match="a class needs a name of 1 to 100 characters"):
            some.add_class(name)
        kept = some.add_class("kept")
        with pytest.raises(Refused, match="a class needs a name"):
            some.rename_class(kept, name)
        with pytest.raises(Refused, match="there is a class 'kept' already"):
            some.add_class("kept ")
        some.rename_class(kept, "kept")  # as it is
        assert names(some) == {"kept": []}


def test_unknown_ids(tmp_path):
    with opened(tmp_path) as some:
        for act in (
            lambda: some.rename_class("x", "y"),
            lambda: some.remove_class("x"),
            lambda: some.add_examples("x", [picture()]),
            lambda: some.remove_example("x"),
            some.undo,
        ):
            with pytest.raises(Unknown):
                act()
        assert some.revision == 0


def test_no_more_than_there_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "MOST_CLASSES", 2)
    monkeypatch.setattr(workspace, "MOST_EXAMPLES", 3)
    with opened(tmp_path) as some:
        first, _ = some.add_class("1"), some.add_class("2")
        with pytest.raises(Refused, match="there are 2 classes already"):
            some.add_class("3")
        some.add_examples(first, [picture(1), picture(2)])
        with pytest.raises(Refused, match="there are 2 examples already, and there may be 3 in all"):
            some.add_examples(first, [picture(3), picture(4)])
        assert names(some) == {"1": ["1.png", "2.png"], "2": []}


def test_one_server_at_a_time(tmp_path):
    with opened(tmp_path), pytest.raises(Refused, match="is open in another server"):
        opened(tmp_path)
    opened(tmp_path).close()


def test_another_network_sees_the_pictures_anew(tmp_path):
    with opened(tmp_path) as some:
        some.add_examples(some.add_class("c"), [picture(1), picture(2)])
    seen = []

    def embed(pictures):
        seen.extend(pictures)
        return [np.full(5, len(each), np.float32) for each in pictures]

    with opened(tmp_path, "another", embed) as some:
        assert [each.vector.tolist() for each in some.examples()[1]] == [[6.0] * 5, [6.0] * 5]
    assert seen == [b"file 1", b"file 2"]
    with opened(tmp_path, "another") as some:  # once is enough
        assert some.examples()[1][0].vector.shape == (5,)


def test_files_that_are_no_workspace(tmp_path):
    (tmp_path / workspace.DATABASE).write_bytes(b"something else entirely" * 100)
    with pytest.raises(Refused, match="is no workspace"):
        opened(tmp_path)
    (tmp_path / workspace.DATABASE).unlink()
    opened(tmp_path).close()
    connection = sqlite3.connect(tmp_path / workspace.DATABASE)
    connection.execute("CREATE TRIGGER surprise AFTER INSERT ON classes BEGIN DELETE FROM examples; END")
    connection.close()
    with pytest.raises(Refused, match="is no workspace of this version"):
        opened(tmp_path)


def test_a_journal_is_refused(tmp_path):
    opened(tmp_path).close()
    (tmp_path / f"{workspace.DATABASE}-journal").write_bytes(b"x")
    with pytest.raises(Damaged, match="-journal, which"):
        opened(tmp_path)


@pytest.mark.parametrize(
    "change", ["UPDATE examples SET class = 'x' WHERE number = 1", "UPDATE examples SET vector = x'00' WHERE number = 1"]
)
def test_examples_that_do_not_belong_together(tmp_path, change):
    with opened(tmp_path) as some:
        some.add_examples(some.add_class("c"), [picture(1), picture(2)])
    connection = sqlite3.connect(tmp_path / workspace.DATABASE)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(Refused, match="is damaged: its examples do not belong together"):
        opened(tmp_path)


def test_links_are_not_followed(tmp_path):
    opened(tmp_path / "real").close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / workspace.DATABASE).symlink_to(tmp_path / "real" / workspace.DATABASE)
    with pytest.raises(OSError, match="link"):
        opened(tmp_path / "other")


KILLED = """
import sys
import numpy as np
from rankshot.serve.workspace import Picture, Workspace
some = Workspace(sys.argv[1], "a", None)
here = some.add_class("c")
for number in range(10**6):
    some.add_examples(here, [Picture(bytes(2000), str(number), np.zeros(8, np.float32))])
    print(number, flush=True)
"""


def test_what_was_acknowledged_outlives_kill_9(tmp_path):
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) == 20:
                os.kill(process.pid, signal.SIGKILL)
                break
        told = [int(line), *map(int, process.stdout.read().split())]
    with opened(tmp_path) as some:
        assert names(some)["c"][: told[-1] + 1] == [str(number) for number in range(told[-1] + 1)]


class Undoing(RuleBasedStateMachine):
    """Whatever was done in whatever order: undone, everything is as it was before."""

    def __init__(self):
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.some, self.before, self.count = opened(self.folder.name), [], 0

    def state(self):
        return self.some.classes()[1], [(each.id, each.class_id) for each in self.some.examples()[1]]

    def class_ids(self):
        return [each.id for each in self.some.classes()[1]]

    @rule()
    def add_class(self):
        self.before.append(self.state())
        self.count += 1
        self.some.add_class(f"class {self.count}")

    @precondition(lambda self: self.class_ids())
    @rule(data=st.data(), what=st.sampled_from(["examples", "rename", "remove"]))
    def change_class(self, data, what):
        class_id = data.draw(st.sampled_from(self.class_ids()))
        self.before.append(self.state())
        self.count += 1
        if what == "examples":
            self.some.add_examples(class_id, [picture(self.count), picture(0)])
        elif what == "rename":
            self.some.rename_class(class_id, f"class {self.count}")
        else:
            self.some.remove_class(class_id)

    @precondition(lambda self: self.some.examples()[1])
    @rule(data=st.data())
    def remove_example(self, data):
        chosen = data.draw(st.sampled_from([each.id for each in self.some.examples()[1]]))
        self.before.append(self.state())
        self.some.remove_example(chosen)

    @precondition(lambda self: self.before)
    @rule()
    def undo(self):
        assert self.some.last_change() is not None
        self.some.undo()
        assert self.state() == self.before.pop()

    @rule()
    def open_again(self):
        before = self.state()
        self.some.close()
        self.some = opened(self.folder.name)
        assert self.state() == before

    @invariant()
    def examples_belong_to_classes(self):
        assert {each.class_id for each in self.some.examples()[1]} <= set(self.class_ids())

    def teardown(self):
        self.some.close()
        self.folder.cleanup()


Undoing.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
test_undoing = Undoing.TestCase


def test_after_everything_is_undone_that_can_be_nothing_else_goes(tmp_path, monkeypatch):
    """Numbers of changes are never used twice: the first class was made by number 1."""
    monkeypatch.setattr(workspace, "UNDOABLE", 3)
    with opened(tmp_path) as some:
        first = some.add_class("first")
        some.add_examples(first, [picture(1)])
        for number in range(5):
            some.rename_class(first, f"first {number}")
        for _ in range(3):
            some.undo()
        some.add_class("second")
        some.undo()
        assert names(some) == {"first 1": ["1.png"]}


def test_old_changes_cannot_be_undone_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "UNDOABLE", 3)
    with opened(tmp_path) as some:
        here = some.add_class("c")
        gone = some.add_examples(here, [picture(1)])
        some.remove_example(gone[0])
        for number in range(4):
            some.rename_class(here, f"c{number}")
        for _ in range(3):
            some.undo()
        with pytest.raises(Unknown, match="there is nothing to undo"):
            some.undo()
        assert names(some) == {"c0": []}
    connection = sqlite3.connect(tmp_path / workspace.DATABASE)
    assert connection.execute("SELECT count(*) FROM examples").fetchone() == (0,)
    connection.close()


def test_names_that_look_the_same_are_the_same(tmp_path):
    """Composed or not; and letters may be joined."""
    with opened(tmp_path / "w") as some:
        some.add_class("Gro\u0308\u00dfe")
        with pytest.raises(Conflict, match="there is a class 'Gr\u00f6\u00dfe' already"):
            some.add_class("Gr\u00f6\u00dfe")
        family = "\U0001f469\u200d\U0001f467"
        some.rename_class(some.add_class("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"), family)
        assert [each.name for each in some.classes()[1]] == ["Gr\u00f6\u00dfe", family]
        for bad in ("\u200d\u0007", "", "  "):
            with pytest.raises(Refused, match="a class needs a name"):
                some.add_class(bad)
