"""docs/serve.md: its commands and its client, run as they stand against a real server."""

import re
import subprocess
from pathlib import Path

import pytest
from glyph_pictures import drawing, embedder_of

from serving import running

PAGE = Path(__file__).parents[1] / "docs" / "serve.md"


def block(language, containing):
    (found,) = [each for each in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL) if containing in each]
    return found


@pytest.mark.slow
def test_curl_and_python(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shape, seed in (("one", "cross", 1), ("two", "cross", 2), ("three", "triangle", 1), ("new", "triangle", 2)):
        (tmp_path / f"{name}.png").write_bytes(drawing(shape, seed))
    with running(embedder_of("conv4-omniglot"), tmp_path / "w") as server:
        address = server.address.rstrip("/")
        done = subprocess.run(["bash", "-ec", f"server={address}\n{block('sh', 'curl')}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert '"label":null' in done.stdout  # a triangle is no cross
        exec(compile(block("python", "httpx"), str(PAGE), "exec"), {"server": address})
    assert capsys.readouterr().out.startswith("triangle ")
