"""What all losses share: references, reductions, and the call that other libraries make."""

import inspect

import pytest
import torch

from rankshot import losses
from rankshot.losses.checks import References
from rankshot.vectors import NotFinite

LOSSES = {
    "ranking": lambda **how: losses.RankingLoss(epsilon=0.3, alpha=2.0, **how),
    "ssvm": lambda **how: losses.RankingLoss(framework="ssvm", **how),
    "smooth-ap": losses.SmoothAPLoss,
    "nca": losses.NCALoss,
    "lmnn": lambda **how: losses.LMNNLoss(neighbours=2, **how),
    "triplet": losses.TripletLoss,
    "fast-ap": losses.FastAPLoss,
    "supcon": losses.SupConLoss,
    "siamese": lambda **how: seeded(losses.SiameseLoss, 5, **how),
}
ONE_A_QUERY = [name for name in LOSSES if name not in ("triplet", "siamese")]  # others take the mean over pairs
every_loss = pytest.mark.parametrize("name", LOSSES)


def seeded(kind, *arguments, **how):
    torch.manual_seed(0)
    return kind(*arguments, **how).double()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 0, 3])  # the last one is alone
    return torch.randn(9, 5, generator=generator, dtype=torch.float64, requires_grad=True), labels


@every_loss
@pytest.mark.filterwarnings("ignore:no query of this batch")  # of the one that is alone
def test_a_query_that_is_compared_with_all_others_loses_what_it_does_in_the_batch(name, batch):
    embeddings, labels = batch
    loss = LOSSES[name](reduction="none")
    together = loss(embeddings, labels)
    assert together.shape == (9,)
    for query in range(9):
        others = torch.arange(9) != query
        alone = loss(
            embeddings[query : query + 1], labels[query : query + 1], ref_emb=embeddings[others], ref_labels=labels[others]
        )
        torch.testing.assert_close(alone, together[query : query + 1])


@every_loss
def test_reductions(name, batch):
    each, total, mean = (LOSSES[name](reduction=reduction)(*batch) for reduction in ("none", "sum", "mean"))
    torch.testing.assert_close(total, each.sum())
    assert mean.shape == ()
    if name in ONE_A_QUERY:
        torch.testing.assert_close(mean, each[:8].mean())  # the one that is alone does not count
        assert each[8] == 0
    elif name == "siamese":
        torch.testing.assert_close(mean, each.mean())  # every image is in as many pairs
    with pytest.raises(ValueError, match="unknown reduction 'max': use one of 'mean', 'sum', 'none'"):
        LOSSES[name](reduction="max")


@every_loss
@pytest.mark.filterwarnings("ignore:no query of this batch")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_references_have_a_gradient_too(name, reduction, batch):
    embeddings, labels = batch
    references = torch.randn(7, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    ref_labels = torch.tensor([0, 1, 2, 3, 0, 1, 4])
    loss = LOSSES[name](reduction=reduction)
    value = loss(embeddings, labels, None, references, ref_labels).sum()
    by_queries, by_items = torch.autograd.grad(value, (embeddings, references))
    assert by_queries.abs().sum() > 0
    assert by_items.abs().sum() > 0
    if reduction == "sum":  # one query at a time
        single = LOSSES[name](reduction="sum")
        parts = [
            torch.autograd.grad(single(embeddings[i : i + 1], labels[i : i + 1], None, references, ref_labels), references)[
                0
            ]
            for i in range(9)
        ]
        torch.testing.assert_close(by_items, torch.stack(parts).sum(0))


@every_loss
def test_it_is_called_as_pytorch_metric_learning_does(name):
    loss = LOSSES[name]()
    assert list(inspect.signature(loss.forward).parameters)[:5] == [
        "embeddings", "labels", "indices_tuple", "ref_emb", "ref_labels",
    ]  # fmt: skip


@every_loss
def test_former_names(name, batch):
    embeddings, labels = batch
    loss, ref_labels = LOSSES[name](), labels.flip(0)
    expected = loss(embeddings, labels, ref_emb=embeddings.flip(0), ref_labels=ref_labels)
    for arguments, names in (
        ((embeddings.flip(0), ref_labels), {}),
        ((embeddings.flip(0),), {"ref_labels": ref_labels}),
        ((), {"ref_embeddings": embeddings.flip(0), "ref_labels": ref_labels}),
    ):
        with pytest.warns(DeprecationWarning, match="ref_embeddings is called ref_emb now") as caught:
            assert torch.equal(loss(embeddings, labels, *arguments, **names), expected)
        assert caught[0].filename == __file__


@every_loss
def test_bad_input(name, batch):
    embeddings, labels = batch
    loss = LOSSES[name]()
    with pytest.raises(ValueError, match="indices_tuple must be None: every image of the batch takes part"):
        loss(embeddings, labels, (torch.tensor([0]), torch.tensor([1]), torch.tensor([2])))
    with pytest.raises(ValueError, match="ref_labels is missing"):
        loss(embeddings, labels, ref_emb=embeddings)
    with pytest.raises(ValueError, match="ref_emb is missing"):
        loss(embeddings, labels, ref_labels=labels)
    with pytest.raises(ValueError, match="embeddings have 5 dimensions, but ref_emb has 4"):
        loss(embeddings, labels, ref_emb=embeddings[:, :4], ref_labels=labels)
    with pytest.raises(ValueError, match="ref_labels must be one for each of 9 ref_emb, got 8"):
        loss(embeddings, labels, ref_emb=embeddings, ref_labels=labels[:8])


@every_loss
def test_what_is_not_finite(name, batch, device):
    embeddings, labels = (each.detach().to(device) for each in batch)
    loss = LOSSES[name]().to(device)
    for bad in (torch.nan, torch.inf):
        wrong = embeddings.clone()
        wrong[3, 2] = bad
        if device == "cuda" and name not in ("ranking", "ssvm"):  # who wait for the device anyway
            assert not loss(wrong, labels).isfinite()
            continue
        with pytest.raises(NotFinite, match=f"^embeddings must be finite, got {bad} in row 3, column 2$"):
            loss(wrong, labels)
        with pytest.raises(NotFinite, match=f"^ref_emb must be finite, got {bad} in row 3, column 2$"):
            loss(embeddings, labels, ref_emb=wrong, ref_labels=labels)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("ranking", "ssvm")])
def test_torch_may_compile_and_transform_it(name, batch):
    """To look whether embeddings are finite does not stand in the way."""
    embeddings, labels = batch
    loss = LOSSES[name]()
    torch.compiler.reset()
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(embeddings, labels), loss(embeddings, labels))
    both = torch.func.vmap(lambda each: loss(each, labels))(torch.stack([embeddings, 2 * embeddings]))
    torch.testing.assert_close(both, loss(embeddings, labels).expand(2))


def test_a_classifier_has_no_references(batch):
    embeddings, labels = batch
    loss = seeded(losses.ClassifierLoss, 5, 4, reduction="none")
    assert loss(embeddings, labels).shape == (9,)
    with pytest.raises(NotFinite, match="embeddings must be finite, got nan in row 0, column 0"):
        loss(embeddings * torch.nan, labels)
    with pytest.raises(ValueError, match="ref_emb must be None: a classifier compares images with classes"):
        loss(embeddings, labels, ref_emb=embeddings, ref_labels=labels)


@every_loss
def test_references_that_are_the_batch_leave_each_query_out_by_its_id(name, batch):
    """What one process sees of a batch that others hold too."""
    embeddings, labels = batch
    loss, ids = LOSSES[name](), torch.tensor([7, 3, 9, -1, 0, 2**40, 5, 6, 8])
    expected = loss(embeddings, labels)
    (gradient,) = torch.autograd.grad(expected, embeddings)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    own = {"ids": ids, "ref_ids": ids[order]}
    found = loss(embeddings, labels, ref_emb=embeddings[order], ref_labels=labels[order], **own)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, embeddings)[0], gradient)
    torch.testing.assert_close(loss(embeddings, labels, ids=ids), expected)  # of the batch alone
    twice = loss(embeddings, labels, ids=ids // 2 * 2)  # some are views of one image
    assert twice != expected


@every_loss
@pytest.mark.filterwarnings("ignore:no query of this batch")
@pytest.mark.parametrize("cuts", [(4,), (1, 3, 8)])
def test_parts_of_a_batch_have_the_sum_and_the_count_of_all(name, cuts, batch):
    embeddings, labels = batch
    ids = torch.arange(9)
    loss = LOSSES[name]()
    parts = []
    for part in torch.tensor_split(ids, cuts):
        everything = References(embeddings, labels, ids, part)
        parts.append(loss.sum_and_count(embeddings[part], labels[part], everything))
    total, count = (sum(each) for each in zip(*parts, strict=True))
    expected = loss(embeddings, labels)
    torch.testing.assert_close(total / count, expected)
    found, wanted = (torch.autograd.grad(value, embeddings, retain_graph=True)[0] for value in (total / count, expected))
    torch.testing.assert_close(found, wanted)


@every_loss
def test_ids_that_do_not_fit(name, batch):
    embeddings, labels = batch
    loss, ids = LOSSES[name](), torch.arange(9)
    with pytest.raises(ValueError, match="ref_ids is missing: give ids and ref_ids, or neither"):
        loss(embeddings, labels, ref_emb=embeddings, ref_labels=labels, ids=ids)
    with pytest.raises(ValueError, match="ref_emb is missing: ref_ids are of references"):
        loss(embeddings, labels, ids=ids, ref_ids=ids)
    with pytest.raises(ValueError, match="ids must be one for each of 9 images, got 8"):
        loss(embeddings, labels, ids=ids[:8])
    with pytest.raises(TypeError, match="ids must be integers"):
        loss(embeddings, labels, ids=ids / 2)
