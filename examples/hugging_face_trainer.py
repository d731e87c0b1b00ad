"""RankingLoss in transformers.Trainer: a small ViT returns it with its embeddings. mAP on classes that were never seen.

pip install transformers accelerate scikit-learn
"""

import tempfile

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader
from transformers import EvalPrediction, Trainer, TrainingArguments, ViTConfig, ViTModel

from rankshot import ranking
from rankshot.data import ClassBatchSampler
from rankshot.losses import RankingLoss

SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
STEPS = 200


class Embedding(torch.nn.Module):
    """Returns its loss, as Trainer asks of a model."""

    def __init__(self) -> None:
        super().__init__()
        self.network = ViTModel(ViTConfig(image_size=8, patch_size=2, num_channels=1, **SMALL), add_pooling_layer=False)
        self.loss_of = RankingLoss.paper()  # with so few classes, and a transformer, it learns more than RankingLoss()

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        embeddings = self.network(pixel_values).last_hidden_state.mean(1)
        return {"loss": self.loss_of(embeddings, labels), "embeddings": embeddings}


class RankingTrainer(Trainer):
    """Batches of several classes, with several images each; they have no end, so max_steps is to be given."""

    def get_train_dataloader(self) -> DataLoader:
        labels = torch.tensor([int(each["labels"]) for each in self.train_dataset])
        sampler = ClassBatchSampler(labels, n_classes=7, batch_size=self.args.train_batch_size)
        return DataLoader(self.train_dataset, batch_sampler=sampler, collate_fn=self.data_collator)


def mean_average_precision(of: EvalPrediction) -> dict[str, float]:
    vectors = torch.nn.functional.normalize(torch.tensor(of.predictions), dim=-1)
    relevance, valid = ranking.relevance_of(torch.tensor(of.label_ids))
    return {"mAP": ranking.average_precision(vectors @ vectors.T, relevance, valid).mean().item()}


def main(folder: str) -> None:
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    rows = [{"pixel_values": image, "labels": label} for image, label in zip(images, labels, strict=True)]
    seen, unseen = [row for row in rows if row["labels"] < 7], [row for row in rows if row["labels"] >= 7]
    settings = {"max_steps": STEPS, "learning_rate": 1e-3, "per_device_train_batch_size": 128}
    quiet = {"save_strategy": "no", "logging_strategy": "no", "report_to": [], "disable_tqdm": True}
    arguments = TrainingArguments(folder, seed=0, per_device_eval_batch_size=128, **settings, **quiet)
    sets = {"train_dataset": seen, "eval_dataset": unseen, "compute_metrics": mean_average_precision}
    trainer = RankingTrainer(model_init=Embedding, args=arguments, **sets)
    before = trainer.evaluate()["eval_mAP"]
    trainer.train()
    after = trainer.evaluate()["eval_mAP"]
    print(f"mAP on digits never seen: {before:.3f} before, {after:.3f} after {STEPS} updates")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
