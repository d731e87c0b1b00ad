"""Attentive Recurrent Comparators (Shyam et al., 2017): an LSTM looks at two images in turns: are they of one class?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from rankshot.limits import whole
from rankshot.models.conv4 import Conv4
from rankshot.models.headed import Headed
from rankshot.models.mirrored import Mirrored
from rankshot.models.network import build_around
from rankshot.models.network import register as register_network
from rankshot.models.normalised import Normalised, normalised
from rankshot.schema import Between

from .episodic import Episodic
from .glimpse import glimpse
from .method import Context, register

MOST_GLIMPSES, MOST_PIXELS, MOST_STATES, MOST_BLOCKS = 1000, 64, 4096, 4
FORGET = 0.2  # first bias of the forget gate, as the authors have it
Turn = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # images, state and cell -> state and cell
NUMBERS_AT_ONCE = {"cpu": 2**24, "cuda": 2**28}  # of the pairs that are compared at once when it answers


class Comparator(nn.Module):
    """The controller: from what it has seen it says where to look next, at one image and the other in turns."""

    def __init__(self, channels: int, window: int, glimpses: int, hidden: int) -> None:
        super().__init__()
        self.channels, self.window, self.glimpses = channels, window, glimpses
        self.controller = nn.LSTMCell(channels * window**2, hidden)
        self.look = nn.Linear(hidden, 3, bias=False)  # without a bias, the first glimpse is of the whole image
        nn.init.normal_(self.look.weight, std=0.01)
        for weights in (self.controller.weight_ih, self.controller.weight_hh):
            for gate in weights.chunk(4):
                nn.init.orthogonal_(gate)
        for bias in (self.controller.bias_ih, self.controller.bias_hh):
            nn.init.zeros_(bias)
        nn.init.constant_(self.controller.bias_ih.chunk(4)[1], FORGET)

    def forward(self, one: Tensor, other: Tensor, turn: Turn | None = None) -> Tensor:
        """(B, H, W, C) each -> (B, hidden): what there is to say of each pair.

        turn   the same as `self.turn`, as torch.compile has made it faster
        """
        state = cell = one.new_zeros(len(one), self.controller.hidden_size)
        for _ in range(self.glimpses):
            for images in (one, other):
                state, cell = (turn or self.turn)(images, state, cell)
        return state

    def turn(self, images: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One glimpse, and what the controller makes of it."""
        # Bounded, for without it training may end with the window out of the images, where no gradient reaches it.
        seen = glimpse(images, self.look(state).tanh(), self.window)
        new: tuple[Tensor, Tensor] = self.controller(seen, (state, cell))
        return new


@register_network("arc")
class ComparingNetwork(nn.Module):
    """Compares every query with every labelled image; a class is as likely as the mean of its images.

    It looks at the pixels, or at the maps that the first `blocks` of Conv4 make of them, and has no embeddings.
    """

    def __init__(
        self,
        embedder: nn.Module,
        window: int = 4,
        glimpses: int = 8,
        hidden: int = 128,
        blocks: Annotated[int, Between(0, MOST_BLOCKS)] = 0,
    ) -> None:
        super().__init__()
        window, glimpses = whole("window", window, 1, MOST_PIXELS), whole("glimpses", glimpses, 1, MOST_GLIMPSES)
        hidden, blocks = whole("hidden", hidden, 1, MOST_STATES), whole("blocks", blocks, 0, MOST_BLOCKS)
        if isinstance(embedder, Mirrored | Headed):
            raise ValueError("a system that compares images has no embeddings: leave out mirror and head")
        network = embedder.network if isinstance(embedder, Normalised) else embedder
        if blocks and type(network) is not Conv4:  # others may do more than their blocks
            raise ValueError(f"it looks at maps of Conv4 alone, and not of {type(network).__name__}: leave out blocks")
        kept = list(network.children())[:blocks]
        self.features = normalised(nn.Sequential(*kept), embedder.preprocess)  # type: ignore[arg-type]
        channels = kept[-1][0].out_channels if kept else embedder.preprocess.channels  # type: ignore[index, union-attr]
        self.comparator = Comparator(int(channels), window, glimpses, hidden)  # type: ignore[arg-type]
        self.head = nn.Linear(hidden, 1)
        self.in_channels = int(embedder.preprocess.channels)  # type: ignore[union-attr, arg-type]

    def forward(self, images: Tensor) -> Tensor:
        raise ValueError("this network compares images and has no embeddings: ask its `answer`")

    def seen(self, images: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, H', W', C'): what it looks at, pixels or maps."""
        if images.shape[1] != self.in_channels:
            raise ValueError(f"this network was made for images of {self.in_channels} channels, got {images.shape[1]}")
        maps: Tensor = self.features(images.contiguous(memory_format=torch.channels_last))  # as Conv4 takes them
        return maps.permute(0, 2, 3, 1).contiguous()

    def alike(self, one: Tensor, other: Tensor, turn: Turn | None = None) -> Tensor:
        """What is seen of images, (B, H, W, C) each -> (B,): the log-odds that both are of one class."""
        logits: Tensor = self.head(self.comparator(one, other, turn))
        return logits.squeeze(-1)

    def answer(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        return self.answer_all(support_x[None], support_y, query_x[None])[0]

    def answer_all(self, support_x: Tensor, support_y: Tensor, query_x: Tensor) -> Tensor:
        from rankshot.fewshot.answerer import normalising_with  # which wants Pillow, as `import rankshot.methods` does not

        episodes, labelled, asked = len(support_x), support_x.shape[1], query_x.shape[1]
        with torch.no_grad(), normalising_with(self, "running"):
            support = self.seen(support_x[:, support_y.argsort(stable=True)].flatten(0, 1))
            queries = self.seen(query_x.flatten(0, 1))
            numbers = 2 * queries[0].numel() + 16 * self.head.in_features  # of a pair
            at_once = max(1, NUMBERS_AT_ONCE.get(queries.device.type, NUMBERS_AT_ONCE["cpu"]) // numbers)
            pairs = torch.arange(episodes * asked * labelled, device=queries.device)
            of_query, of_support = pairs // labelled, pairs // (asked * labelled) * labelled + pairs % labelled
            logits = [
                self.alike(queries[one], support[other])
                for one, other in zip(torch.split(of_query, at_once), torch.split(of_support, at_once), strict=True)
            ]
        return torch.cat(logits).view(episodes, asked, int(support_y.max()) + 1, -1).mean(-1)


# As the authors' code has it for maps of Omniglot: 64 of 16x16 there, of a deeper network, and 64 of 7x7 here. What they
# had for mini-ImageNet is not known to us.
AS_PUBLISHED: dict[str, Any] = {
    "batch_classes": 32,
    "batch_size": 64,  # 128 pairs
    "learning_rate": 1e-4,
    "weight_decay": 1e-4,
    "blocks": 2,
    "hidden": 256,
}


@register(
    "arc",
    run_settings={"batch_classes": 20, "batch_size": 120},
    presets={
        "omniglot": {**AS_PUBLISHED, "updates": 200_000},
        "mini-imagenet": AS_PUBLISHED,
    },
)
class ARC(Episodic):
    """Attentive Recurrent Comparators (Shyam et al., 2017): glimpses at two images in turns tell whether they are alike.

    Every image of a batch is compared with the next one of its class, and with one of the next class: as many pairs of
    one class as of two. It optimises the cross-entropy of "same" and "different".

    Args:
        context: what the method is made for.
        glimpses: how many at each image of a pair.
        window: pixels of a side of a glimpse.
        hidden: states of the LSTM.
        blocks: of Conv4 whose feature maps it looks at (ConvARC); 0 for the pixels themselves.

    Examples:
        With weights of zero every pair is as likely the same as different, and the loss is log(2):

        >>> import torch
        >>> import rankshot
        >>> from rankshot.methods import ARC, Context
        >>> preprocess = rankshot.Preprocess(1, 28, 28)
        >>> embedder = rankshot.wrap(rankshot.models.Conv4(filters=4), preprocess=preprocess)
        >>> method = ARC(Context(embedder.embedding_dim, classes=100, batch_classes=2, batch_size=4), glimpses=2, hidden=8)
        >>> network = method.network(embedder)
        >>> for weight in network.parameters():
        ...     _ = torch.nn.init.zeros_(weight)
        >>> loss, embeddings = method.learn(network, torch.rand(4, 1, 28, 28), torch.tensor([0, 0, 1, 1]))
        >>> round(loss.item(), 4), embeddings
        (0.6931, None)
    """

    mixed: ClassVar[bool] = False

    def __init__(self, context: Context, *, glimpses: int = 8, window: int = 4, hidden: int = 128, blocks: int = 0) -> None:
        super().__init__(context)
        self.glimpses, self.window = whole("glimpses", glimpses, 1, MOST_GLIMPSES), whole("window", window, 1, MOST_PIXELS)
        self.hidden, self.blocks = whole("hidden", hidden, 1, MOST_STATES), whole("blocks", blocks, 0, MOST_BLOCKS)

    def network(self, embedder: nn.Module) -> nn.Module:
        return build_around(
            embedder, "arc", window=self.window, glimpses=self.glimpses, hidden=self.hidden, blocks=self.blocks
        )

    def turn_of(self, model: nn.Module) -> Turn:
        assert isinstance(model, ComparingNetwork)
        return model.comparator.turn

    def learn(self, model: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
        assert isinstance(model, ComparingNetwork)
        seen = model.seen(images)
        of_class = seen.view(self.way, self.per_class, *seen.shape[1:])
        same = of_class.roll(1, 1)
        one, other = (torch.cat(pair).flatten(0, 1) for pair in ((of_class, of_class), (same, same.roll(1, 0))))
        right = torch.cat([labels.new_ones(len(images)), labels.new_zeros(len(images))])
        log_odds = model.alike(one, other, self.compiled_turn)
        return nn.functional.binary_cross_entropy_with_logits(log_odds, right.to(one.dtype)), None
