"""Galleries of the first format, as earlier versions wrote them."""

import json
import zlib

import numpy as np

from rankshot.gallery.format_1 import ADDED, DELETED, HEADER, ITEMS, JOURNAL, RECORD, VECTORS


def write_format_1(folder, changes, dimensions=8, about=None):
    """changes: ("add", [[(id, vector, metadata), …] of each block]) or ("delete", [rows])."""
    folder.mkdir()
    vectors, items, records, rows = b"", b"", [], 0
    for kind, content in changes:
        blocks = content if kind == "add" else [content]
        for place, block in enumerate(blocks):
            if kind == "add":
                lines = "".join(json.dumps([id, note]) + "\n" for id, _, note in block).encode()
                raw = np.array([vector for _, vector, _ in block], "<f4").tobytes()
            else:
                lines, raw = np.array(block, "<u8").tobytes(), b""
            count, first = (len(block), rows) if kind == "add" else (0, 0)
            record = np.zeros(1, RECORD)
            record["magic"], record["kind"] = b"rsg1", ADDED if kind == "add" else DELETED
            record["more"], record["place"] = place < len(blocks) - 1, place
            record["first"], record["rows"] = first, count
            record["offset"], record["length"] = len(items), len(lines)
            record["vectors"], record["items"] = zlib.crc32(raw), zlib.crc32(lines)
            record["own"] = zlib.crc32(record.tobytes()[:-4])
            records.append(record.tobytes())
            vectors, items, rows = vectors + raw, items + lines, rows + count
    about = about or {"embedder": {"name": None, "fingerprint": None}}
    (folder / HEADER).write_text(json.dumps({"format": 1, "dimensions": dimensions, "about": about}))
    (folder / VECTORS).write_bytes(vectors)
    (folder / ITEMS).write_bytes(items)
    (folder / JOURNAL).write_bytes(b"".join(records))
