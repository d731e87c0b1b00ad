"""Directories of tags, as TIFF and EXIF have them. Pillow reads what every tag points at, even if all point at the same."""

from __future__ import annotations

from typing import NamedTuple

from .header import Undecodable, numbers

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
FORMS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
AS_THEY_ARE = (1, 2, 6, 7)  # kept as bytes; of anything else every value becomes an object
MOST_TAGS, MOST_VALUES = 4096, 2**20
BYTES_A_VALUE = 40  # of a Python integer in a tuple


class Tag(NamedTuple):
    """Of what kind its values are, how many, and where."""

    kind: int
    many: int
    offset: int


class Order(NamedTuple):
    """How numbers are written: of which end first, and in a BigTIFF or not."""

    end: str
    big: bool


class Directory(NamedTuple):
    """Tags by number, how many bytes they point at, and how many values that are."""

    tags: dict[int, Tag]
    size: int
    values: int


def order_of(content: bytes) -> Order:
    """From the first four bytes."""
    return Order("<" if content[:2] == b"II" else ">", 43 in content[2:4])


def start_of(content: bytes, order: Order) -> int:
    """Where the first directory is."""
    return numbers(order.end + ("Q" if order.big else "I"), content, 8 if order.big else 4)[0]


def directory(content: bytes, offset: int, order: Order) -> Directory:
    """What is there, checked: tags that cannot be read are left out, as Pillow does."""
    if offset >= len(content):
        raise Undecodable("its directory of tags is not within the file")
    (count,) = numbers(order.end + ("Q" if order.big else "H"), content, offset)
    if count > MOST_TAGS:
        raise Undecodable(f"{count:,} tags are more than {MOST_TAGS:,}")
    width, inline = (20, 8) if order.big else (12, 4)
    form, first = (order.end + ("HHQ" if order.big else "HHI")), offset + (8 if order.big else 2)
    tags: dict[int, Tag] = {}
    total = values = 0
    for entry in range(first, min(first + count * width, len(content) - width + 1), width):
        tag, kind, many = numbers(form, content, entry)
        size = SIZES.get(kind, 0) * many
        where = entry + width - inline
        if size > inline:
            (where,) = numbers(order.end + ("Q" if order.big else "I"), content, where)
        if not size or where + size > len(content):
            continue
        if tag in tags:
            raise Undecodable(f"it has tag {tag} twice")
        tags[tag] = Tag(kind, many, where)
        total += size
        values += 0 if kind in AS_THEY_ARE else many
    if total > len(content) + MOST_TAGS or values > MOST_VALUES:
        raise Undecodable("its tags tell of more than the file holds")
    return Directory(tags, total, values)


def value(content: bytes, tag: Tag | None, order: Order, usual: int) -> int:
    """The first value of a tag; `usual` where there is none, or no whole number."""
    if tag is None or tag.kind not in FORMS:
        return usual
    return numbers(order.end + FORMS[tag.kind], content, tag.offset)[0]


def check_exif(content: bytes) -> None:
    r"""Check that the EXIF tags of a picture take little memory. Damaged tags pass: Pillow judges these.

    Args:
        content: of the EXIF block, from its byte order mark on.

    Raises:
        Undecodable: if there are too many tags, or they tell of more than the block holds.

    Examples:
        >>> from rankshot.data import headers
        >>> start = b"II*\x00" + (8).to_bytes(4, "little")  # little endian; the directory is at byte 8
        >>> headers.check_exif(start + (1).to_bytes(2, "little") + bytes(12))  # one tag
        >>> headers.check_exif(start + (5000).to_bytes(2, "little") + bytes(12))
        Traceback (most recent call last):
        rankshot.data.headers.header.Undecodable: 5,000 tags are more than 4,096
    """
    if len(content) > 8 and content[:2] in (b"II", b"MM"):
        order = order_of(content)
        if (start := start_of(content, order)) < len(content) - 8:
            directory(content, start, order)
