"""docs/architecture.md lists every module, in an order in which each imports only from those above it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rankshot"
ENDS = {"rankshot", "rankshot.__main__"}  # above nothing: they may import whatever they like


def listed():
    """The modules in the order of the page. A package's own file comes after its modules."""
    (block,) = re.findall(r"^src/rankshot/\n(.*?)^tests/", (ROOT / "docs" / "architecture.md").read_text(), re.M | re.S)
    names, packages = [], ["rankshot"]
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names += reversed([".".join(packages[:k]) for k in range(depth + 1, len(packages) + 1)])
        del packages[depth:]
        for word in line.split():
            if word.endswith("/"):
                packages.append(word[:-1])
                break
            if not word.endswith(".py"):
                break
            names.append(".".join([*packages, word[:-3]]))
    return [*names, *reversed([".".join(packages[:k]) for k in range(2, len(packages) + 1)])]


def modules():
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name, path, known):
    """(line, module of ours) of all imports, those within functions too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            for each in node.names:
                inner = f"{source}.{each.name}"
                if inner in known or source in known:
                    yield node.lineno, inner if inner in known else source


def test_the_page_lists_every_module_once():
    assert sorted(listed()) == sorted(modules().keys() - ENDS)


def test_each_imports_only_from_those_above():
    known, order = modules(), {name: place for place, name in enumerate(listed())}
    wrong = {
        f"{name}, line {line}: {other}"
        for name in order
        for line, other in imported(name, known[name], known)
        if order.get(other, len(order)) >= order[name]
    }
    assert not wrong


def test_no_private_names_across_modules():
    wrong = {
        f"{name}, line {node.lineno}: {each.name}"
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("rankshot"))
        for each in node.names
        if each.name.startswith("_") and not each.name.endswith("__")
    }
    assert not wrong
