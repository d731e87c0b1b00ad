"""What there is to do, what is left out and why, and what is not done again."""

import pytest

from rankshot.cli.main import main
from rankshot.reproduce.photographs.contenders import METHODS
from rankshot.reproduce.photographs.stages import Stage, perform_all


def stage(files, name="some", wants=None, error=None):
    def perform():
        if error:
            raise error
        files.append(name)

    return Stage(name, lambda: (files.count(name), 1), perform, wants)


def test_one_after_another_what_is_there_is_not_made_again(capsys):
    files = ["first"]
    assert perform_all([stage(files, "first"), stage(files, "second")], None)
    assert files == ["first", "second"]
    assert capsys.readouterr().out.splitlines() == ["first: 1 of 1 done", "second: 1 of 1 done"]


def test_what_cannot_be_done_is_told_and_left_out(capsys):
    files = []
    missing = FileNotFoundError("there is no base")
    chosen = [stage(files, "cub/head", wants="cub"), stage(files, "on", error=missing), stage(files, "last")]
    assert not perform_all(chosen, None)
    assert files == ["last"]
    left_out, why, so_far, last = capsys.readouterr().out.splitlines()
    assert left_out == "cub/head: left out, for want of --cub FOLDER"
    assert (why, so_far, last) == ("on: there is no base", "on: 0 of 1 done", "last: 1 of 1 done")


def test_none_is_begun_when_time_is_up():
    files = []
    assert not perform_all([stage(files)], 0.0)
    assert files == []


def test_on_the_command_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "photographs", "--list", "--only", "*/head"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{task}/head: 0 of {9 * len(METHODS)} done" for task in ("cub", "grocery")
    ]
    assert main(["reproduce", "photographs", "--only", "cub/*"]) == 1
    assert "cub/head: left out, for want of --cub FOLDER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "nothing"], "no stage of photographs is called 'nothing'"),
        (["--trials"], "photographs has one list of runs: give it without --trials"),
        (["--only", "cub/head", "--cub", "nowhere"], "nowhere"),
    ],
    ids=str,
)
def test_bad_input(options, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "photographs", *options]) == 1
    told = capsys.readouterr()
    assert message in told.err + told.out
