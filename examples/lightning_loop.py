"""RankingLoss in a LightningModule, with batches of several classes. mAP on classes that were never seen.

pip install lightning scikit-learn
"""

import lightning
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from rankshot import ranking
from rankshot.data import ClassBatchSampler
from rankshot.losses import RankingLoss
from rankshot.models import Conv4

STEPS = 100
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


class Retrieval(lightning.LightningModule):
    """Learns to rank images of the same class first."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.loss_of = Conv4(in_channels=1, filters=32), RankingLoss()
        self.found = ranking.RetrievalMetric("ap")

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        images, labels = batch
        return self.loss_of(self.network(images), labels)

    def validation_step(self, batch: list[torch.Tensor], number: int) -> None:
        """Every image of the batch is a query, and ranks all others."""
        images, labels = batch
        vectors = torch.nn.functional.normalize(self.network(images), dim=-1)
        relevance, valid = ranking.relevance_of(labels)
        queries = torch.arange(len(labels), device=labels.device)[:, None].expand_as(valid)
        self.found.update((vectors @ vectors.T)[valid], relevance[valid], indexes=queries[valid])

    def on_validation_epoch_end(self) -> None:
        self.log("mAP", self.found.compute())
        self.found.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    lightning.seed_everything(0, verbose=False)
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    images, is_seen = torch.nn.functional.interpolate(images, scale_factor=2), labels < 7  # 7, 8 and 9 are never seen
    sampler = ClassBatchSampler(labels[is_seen], n_classes=7, batch_size=128)  # without end: max_steps is to be given
    seen = DataLoader(TensorDataset(images[is_seen], labels[is_seen]), batch_sampler=sampler)
    unseen = DataLoader(TensorDataset(images[~is_seen], labels[~is_seen]), batch_size=len(labels))
    trainer, model = lightning.Trainer(max_steps=STEPS, val_check_interval=STEPS, **QUIET), Retrieval()
    before = trainer.validate(model, unseen, verbose=False)[0]["mAP"]
    trainer.fit(model, seen, unseen)
    after = trainer.validate(model, unseen, verbose=False)[0]["mAP"]
    print(f"mAP on digits never seen: {before:.3f} before, {after:.3f} after {STEPS} updates")


if __name__ == "__main__":
    main()
