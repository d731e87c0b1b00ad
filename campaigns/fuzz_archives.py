"""Archives, and tables of files, that data sets are prepared from."""

from __future__ import annotations

import random
from pathlib import Path

from .archives import entries
from .arena import Arena
from .case import Case, bring
from .mutations import ODD_TEXTS, changed_bytes, other_file
from .tars import hostile_tar
from .zips import hostile_zip, zipped

STEPS = {
    "own": [["data", "prepare", "{file}", "--size", "8"], ["data", "list"]],
    "omniglot": [["data", "prepare", "omniglot", "--from", "{file}", "--size", "8"]],
    "cub": [["data", "prepare", "cub", "--from", "{file}", "--size", "8"]],
    "mini-imagenet": [["data", "prepare", "mini-imagenet", "--from", "{file}", "--size", "8"]],
    "csv": [["data", "prepare", "{file}", "--size", "8"]],
}


class Archives:
    """A hostile archive or csv file."""

    name, share = "archives", 16
    families: tuple[str, ...] = ("own", "csv")

    def make(self, chance: random.Random, arena: Arena, goods: Path) -> Case:
        family = chance.choices(list(STEPS), (12, 1, 1, 1, 4))[0]
        if family == "csv":
            path, description = self._table(chance, arena, goods)
        else:
            make, suffixes = chance.choice(((hostile_zip, (".zip",)), (hostile_tar, (".tar", ".tar.gz", ".tgz"))))
            content, description = make(chance, str(arena.canary))
            path = arena.work / f"archive{chance.choice((*suffixes, *suffixes, '.zip', '.tar', ''))}"
            path.write_bytes(content)
            if chance.random() < 0.05:
                description = other_file(path, chance, arena, named=True)
        steps = [[argument.replace("{file}", path.name) for argument in step] for step in STEPS[family]]
        if chance.random() < 0.1:
            steps[0].append("--strict")
        return Case(self.name, f"{description}; {family}", steps, None, family if family in self.families else "own")

    def good(self, family: str, arena: Arena, goods: Path) -> Case:
        if family == "csv":
            bring(goods, arena, "pictures")
            (arena.work / "t.csv").write_text(
                "path,label\n" + "".join(f"pictures/c{n}/{k}.png,c{n}\n" for n in range(6) for k in (0, 1))
            )
            return Case(self.name, "good", [["data", "prepare", "t.csv", "--size", "8"]])
        (arena.work / "good.zip").write_bytes(zipped(entries(random.Random(0))))
        return Case(self.name, "good", [["data", "prepare", "good.zip", "--size", "8"], ["data", "list"]])

    def _table(self, chance: random.Random, arena: Arena, goods: Path) -> tuple[Path, str]:
        """path,label[,split], with something odd in a line."""
        bring(goods, arena, "pictures")
        lines = [[f"pictures/c{n}/{k}.png", f"c{n}"] for n in range(6) for k in range(2)]
        odd = (
            *ODD_TEXTS,
            "../canary/picture.png",
            str(arena.canary / "picture.png"),
            "/dev/zero",
            '"',
            "x,y,z",
            "pictures",
            "A" * 200_000,
        )
        for _ in range(chance.choice((1, 2))):
            lines[chance.randrange(len(lines))][chance.randrange(2)] = chance.choice(odd)
        header = chance.choice(("path,label", "path,label", "path,label,split", "label,path", "", "path,label,label"))
        text = "\n".join([header, *(",".join(line) for line in lines)])
        content, description = text.encode("utf-8", "surrogatepass"), "odd csv"
        if chance.random() < 0.3:
            content, description = changed_bytes(content, chance)
        path = arena.work / "table.csv"
        path.write_bytes(content)
        if chance.random() < 0.1:
            description = other_file(path, chance, arena, named=True)
        return path, f"csv: {description}"
