"""The notebooks as pages of the site: text, code, and what the code printed and drew."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def on_files(files: Files, config: Any) -> Files:
    """A page, its pictures, and the notebook itself to download."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        pictures: dict[str, bytes] = {}
        text = markdown(path, pictures)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        files.append(File.generated(config, f"notebooks/{path.name}", abs_src_path=str(path)))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def markdown(path: Path, pictures: dict[str, bytes]) -> str:
    """The text of the page; adds what it shows to `pictures`, by name."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [shown(output, path.stem, pictures) for output in outputs(cell)]
    heading, *rest = parts
    note = f'*This page is a notebook: <a href="{path.name}" download>download it</a> and run it.*'
    title, _, introduction = heading.partition("\n")
    return "\n\n".join([title, note, introduction.strip(), *rest]) + "\n"


def outputs(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a cell, with the lines that it printed one after another as one."""
    printed = ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
            continue
        if printed:
            yield {"text/plain": printed}
            printed = ""
        yield output["data"]
    if printed:
        yield {"text/plain": printed}


def shown(data: dict[str, Any], notebook: str, pictures: dict[str, bytes]) -> str:
    """One output: a picture if it is one, or text."""
    if "image/png" in data:
        name = f"{notebook}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode("".join(data["image/png"]))
        return f'<img src="{name}" alt="what the code above draws">'
    return f'<pre class="output">{html.escape("".join(data["text/plain"]))}</pre>'
