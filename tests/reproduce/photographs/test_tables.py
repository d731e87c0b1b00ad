"""Tables of photographs, from the committed records."""

from itertools import pairwise
from pathlib import Path

from rankshot.reproduce.photographs.tables import page

RESULTS = Path(__file__).parents[3] / "results"


def test_above_every_table_is_how_many_seeds_it_has_and_what_its_spread_is():
    found = [(above, table) for above, table in pairwise(page(RESULTS).split("\n\n")) if table.startswith("| ")]
    assert len(found) == 5
    for above, table in found:
        assert above.startswith("In %, ")
        assert " seed" in above
        assert ("±" in table) == ("±" in above)


def test_nothing_measured_yet(tmp_path):
    assert page(tmp_path) == ""
