"""Which classes are mixed up."""

import re

from rankshot.gallery.answers import Answered
from rankshot.report.confusions import MOST_CLASSES, confusions


def picture(name):
    return f"data:{name}" if name else None


def rows_of(html):
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]


def test_counts_and_the_surest_mistake():
    answered = [
        Answered("a/1", "a", "a", 0.9, "x"),
        Answered("a/2", "a", "b", 0.6, "x"),
        Answered("a/3", "a", "b", 0.8, "x"),
        Answered("b/1", "b", "none of these", None, "x"),
        Answered("c/1", "c", "c", 0.5, "x"),  # never mixed up: it is not in the table
    ]
    html = confusions(answered, {"a": "an.png", "b": "other.png"}, picture)
    assert re.findall(r"<th scope=col><span>(.*?)</span>", html) == ["a", "b", "none of these"]
    first, second = rows_of(html)
    assert first[0].endswith(">a")
    assert 'src="data:an.png"' in first[0]
    assert first[1] == "<b>1</b>"
    assert first[2].startswith("<b>2</b>")
    assert 'src="data:a/3"' in first[2]
    assert first[3] == ""
    assert second[3].startswith("<b>1</b>")
    assert "all of their images were right and none was taken for them: c." in html


def test_nothing_is_mixed_up():
    assert "Every answer was right" in confusions([Answered("a/1", "a", "a", 0.9, "x")], {}, picture)


def test_many_classes_and_names_from_anywhere():
    names = [f"<b>{number:02d}" for number in range(40)]
    answered = [
        Answered(f"{name}/{number}", name, names[place - 1], 0.5, "x")
        for place, name in enumerate(names)
        for number in range(place + 1)
    ]
    html = confusions(answered, {}, lambda name: None)
    assert len(re.findall("<th scope=col>", html)) == MOST_CLASSES
    assert "&lt;b&gt;38" in html
    assert "><b>38" not in html.replace("<td class=wrong><b>", "")
    assert f"The {MOST_CLASSES} of 40 classes that are mixed up the most" in html
