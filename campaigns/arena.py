"""A place for one input at a time: a folder to work in, and beside it what nobody may touch."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

from PIL import Image

TOKEN = "canary-7d3f"  # what lies outside; an answer that holds it has read what it should not
HOSTILE_PROGRAM = "#!/bin/sh\necho started > {canary}/started\n"


class Arena:
    """One worker's own.

    work     all that an input may read and write, its caches too; new for each input
    canary   files of known content, which links within inputs lead to
    home     the home folder, as good as empty
    notes    what the child tells about itself, outside of everything
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work, self.canary, self.home, self.bin, self.notes = (
            folder / name for name in ("work", "canary", "home", "bin", "notes")
        )
        self.restore()

    def restore(self) -> None:
        """As on the first day."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in (self.work, self.canary / "empty", self.home / ".config", self.bin, self.notes):
            folder.mkdir(parents=True)
        (self.home / ".bashrc").write_text(f"# {TOKEN}\n")
        (self.canary / "secret.txt").write_text(f"{TOKEN}\n")
        (self.canary / "config.json").write_text(f'{{"{TOKEN}": 1}}\n')
        (self.canary / "lines.bin").write_bytes(TOKEN.encode() * 8)
        Image.new("RGB", (16, 16), (9, 99, 199)).save(self.canary / "picture.png")
        with sqlite3.connect(self.canary / "data.sqlite") as database:
            database.execute(f"create table t (x text default '{TOKEN}')")
        database.close()
        for program in ("gs", "gswin64c", "xdg-open"):  # found before those of the machine
            (self.bin / program).write_text(HOSTILE_PROGRAM.format(canary=self.canary))
            (self.bin / program).chmod(0o755)
        self._before = self._seen()

    def clear(self) -> None:
        """Nothing of the input before."""
        for folder in (self.work, self.notes):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()

    def touched(self) -> list[str]:
        """What has changed outside of `work`; put right for the next input."""
        now = self._seen()
        changed = sorted(name for name in self._before.keys() | now.keys() if self._before.get(name) != now.get(name))
        if changed:
            self.restore()
        return changed

    def environment(self) -> dict[str, str]:
        inside = {"XDG_CACHE_HOME": "xdg", "RANKSHOT_DATA": "cache", "TMPDIR": "tmp", "MPLCONFIGDIR": "mpl"}
        return {
            "HOME": str(self.home),
            "PATH": f"{self.bin}{os.pathsep}{os.environ.get('PATH', '')}",
            "COMMIT": "campaign",  # asks no git
            **{name: str(self.work / folder) for name, folder in inside.items()},
        }

    def _seen(self) -> dict[str, tuple[int, int, str]]:
        """Every file outside: its mode, its time, what it holds."""
        seen = {}
        for top in (self.canary, self.home, self.bin):
            for folder, folders, files in os.walk(top):
                for name in (*folders, *files):
                    path = os.path.join(folder, name)
                    status = os.lstat(path)
                    plain = stat.S_ISREG(status.st_mode)
                    content = hashlib.sha256(Path(path).read_bytes()).hexdigest() if plain else ""
                    seen[os.path.relpath(path, self.folder)] = (
                        status.st_mode,
                        status.st_mtime_ns if plain else 0,
                        content,
                    )
        return seen


def room() -> Path:
    """A new folder for arenas: in memory where that can be, so that no disk is waited for."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**31 else None
    return Path(tempfile.mkdtemp(prefix="rankshot-campaign-", dir=parent))
