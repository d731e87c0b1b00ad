"""Labels to masks and counts."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from rankshot.ranking.pool import EMPTY, relevance_of, side_counts

labels = st.lists(st.integers(-3, 3), min_size=1, max_size=12).map(torch.tensor)

image = st.tuples(st.integers(-2, 2), st.integers(-2, 2))
numbered = st.lists(image, min_size=1, max_size=10).map(torch.tensor)
with_gaps = st.lists(image | st.just((EMPTY, EMPTY)), min_size=1, max_size=10).map(torch.tensor)


@given(labels)
def test_a_batch_ranks_itself_and_leaves_each_query_out(labels):
    relevance, valid = relevance_of(labels)
    for query, one in enumerate(labels):
        for item, other in enumerate(labels):
            assert valid[query, item] == (query != item)
            assert relevance[query, item] == (query != item and one == other)
    check_counts(side_counts(labels), relevance, valid)


@given(labels, labels)
def test_queries_rank_references(labels, ref_labels):
    relevance, valid = relevance_of(labels, ref_labels)
    assert valid.all()
    for query, one in enumerate(labels):
        for item, other in enumerate(ref_labels):
            assert relevance[query, item] == (one == other)
    check_counts(side_counts(labels, ref_labels), relevance, valid)


@given(numbered, with_gaps)
def test_a_query_leaves_out_what_has_its_id(queries, items):
    """Also where an id has two labels, or several items have one id."""
    (labels, ids), (ref_labels, ref_ids) = queries.T, items.T
    relevance, valid = relevance_of(labels, ref_labels, ids, ref_ids)
    for query, (one, own) in enumerate(queries.tolist()):
        for item, (other, its) in enumerate(items.tolist()):
            assert valid[query, item] == (own != its != EMPTY)
            assert relevance[query, item] == (own != its and one == other)
    check_counts(side_counts(labels, ref_labels, ids, ref_ids), relevance, valid)


def check_counts(counts, relevance, valid):
    assert torch.equal(counts.relevant, relevance.sum(-1))
    assert torch.equal(counts.irrelevant, (valid & ~relevance).sum(-1))
