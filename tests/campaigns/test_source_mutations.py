"""Every change that the campaign makes can be made."""

import pytest

from campaigns.source_mutations import MUTATIONS, ROOT


@pytest.mark.parametrize("package", MUTATIONS)
def test_what_is_changed_stands_in_the_source(package):
    for file, before, after in MUTATIONS[package]:
        assert before in (ROOT / "src" / "rankshot" / package / file).read_text(), (file, before)
        assert before != after
    assert len(set(MUTATIONS[package])) >= 10
