"""Labels to masks and counts."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from rankshot.ranking.pool import relevance_of, relevant_counts

labels = st.lists(st.integers(-3, 3), min_size=1, max_size=12).map(torch.tensor)


@given(labels)
def test_a_batch_ranks_itself_and_leaves_each_query_out(labels):
    relevance, valid = relevance_of(labels)
    for query, one in enumerate(labels):
        for item, other in enumerate(labels):
            assert valid[query, item] == (query != item)
            assert relevance[query, item] == (query != item and one == other)
    assert torch.equal(relevant_counts(labels), relevance.sum(-1))


@given(labels, labels)
def test_queries_rank_references(labels, ref_labels):
    relevance, valid = relevance_of(labels, ref_labels)
    assert valid.all()
    for query, one in enumerate(labels):
        for item, other in enumerate(ref_labels):
            assert relevance[query, item] == (one == other)
    assert torch.equal(relevant_counts(labels, ref_labels), relevance.sum(-1))
