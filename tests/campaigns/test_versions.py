"""What `make versions` says of an environment is what happened there."""

import json
import sys

import pytest

from campaigns import versions


def test_failures_are_counted_and_named(tmp_path, campaign):
    path = tmp_path / "test_planted.py"
    path.write_text(
        "import pytest\n\n\ndef test_good():\n    pass\n\n\ndef test_bad():\n    raise ValueError\n\n\n"
        "@pytest.mark.slow\ndef test_long():\n    raise ValueError\n"
    )
    counts, failed = versions.tested(sys.executable, [str(path)], 1)
    assert counts == {"failed": 1, "passed": 1}
    assert len(failed) == 1
    assert failed[0].endswith("test_planted.py::test_bad")


def test_to_run_no_test_is_a_failure(tmp_path, campaign):
    counts, failed = versions.tested(sys.executable, [str(tmp_path / "nothing.py")], 1)
    assert counts.get("passed", 0) == 0
    assert "no test passed" in failed[-1]


def test_results_are_kept_beside_earlier_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "RESULT", tmp_path / "versions.json")
    for name, passed in (
        ("Python 3.12, oldest packages", 1),
        ("Python 3.13, newest packages", 2),
        ("Python 3.12, oldest packages", 3),
    ):
        versions.keep(name, {"passed": passed})
    kept = json.loads((tmp_path / "versions.json").read_text())
    assert kept == {"Python 3.12, oldest packages": {"passed": 3}, "Python 3.13, newest packages": {"passed": 2}}


def test_what_cannot_be_looked_up_is_no_missing_wheel(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.optional-dependencies]\nnone = ["no such name"]\n'
    )
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="the extra none cannot be looked up"):
        versions.available("none", sys.executable)


def test_a_python_that_is_not_here_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["versions", "--pythons", "3.99"])
    with pytest.raises(SystemExit) as ended:
        versions.main()
    assert ended.value.code == 1
    assert "Python 3.99 is not here" in capsys.readouterr().out
