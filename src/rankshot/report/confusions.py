"""A confusion matrix with pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape

from rankshot.gallery.answers import Answered

MOST_CLASSES = 16  # of the table: those that are mixed up the most
Picture = Callable[[str], str | None]  # the name of a file -> a data URI; None: it cannot be read


def confusions(answered: Sequence[Answered], examples: dict[str, str], picture: Picture) -> str:
    """Rows are what the images are, columns what they were taken for; each mistake with its most certain image.

    examples   the name of an example of each class
    """
    counts = Counter((each.truth, each.answer) for each in answered)
    wrong = Counter[str]()
    for (truth, answer), count in counts.items():
        if truth != answer:
            wrong.update({truth: count, answer: count})
    if not wrong:
        return "<p>Every answer was right.</p>"
    shown = sorted(sorted(wrong, key=lambda name: (-wrong[name], name))[:MOST_CLASSES])
    rows = [name for name in shown if any(truth == name for truth, _ in counts)]
    surest = {
        (each.truth, each.answer): each for each in sorted(answered, key=lambda each: each.probability or 0)
    }  # the last one of a pair is the surest
    head = "".join(f"<th scope=col><span>{escape(name)}</span></th>" for name in shown)
    body = "".join(
        f"<tr><th scope=row>{_image(picture(examples.get(name, '')), f'an example of {name}')}{escape(name)}</th>"
        + "".join(_cell(counts[name, other], surest.get((name, other)), name == other, picture) for other in shown)
        + "</tr>"
        for name in rows
    )
    all_wrong = len(wrong)
    some = f" The {len(shown)} of {all_wrong} classes that are mixed up the most." if all_wrong > len(shown) else ""
    if faultless := sorted({each.truth for each in answered} - wrong.keys()):
        named = ", ".join(map(escape, faultless[:MOST_CLASSES])) + (", …" if len(faultless) > MOST_CLASSES else "")
        some += f" Not shown, since all of their images were right and none was taken for them: {named}."
    about = (
        "Rows are the classes of the images, columns what they were taken for. With each mistake stands the image that the "
        f"classifier was surest about.{some}"
    )
    table = f"<table class=confusions><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{about}</p><div class=scroll>{table}</div>"


def _cell(count: int, surest: Answered | None, is_right: bool, picture: Picture) -> str:
    if not count or surest is None:
        return "<td></td>"
    if is_right:
        return f"<td class=right><b>{count}</b></td>"
    return f"<td class=wrong><b>{count}</b>{_image(picture(surest.image), surest.image)}</td>"


def _image(uri: str | None, name: str) -> str:
    told = escape(name, quote=True)
    return "" if uri is None else f'<img src="{uri}" alt="{told}" title="{told}">'
