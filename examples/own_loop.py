"""Learn on some handwritten digits, then retrieve digits that were never seen: the loss in a loop of one's own.

The images are scikit-learn's own 8x8 digits, so there is nothing to download.
"""

import torch
from sklearn.datasets import load_digits

from rankshot import ranking
from rankshot.losses import RankingLoss

SEEN, UNSEEN = (0, 1, 2, 3, 4, 5, 6), (7, 8, 9)
STEPS, BATCH = 400, 128


def mean_average_precision(embeddings: torch.Tensor, labels: torch.Tensor) -> float:
    """Every image ranks all others; 1 when its own class always comes first."""
    unit = torch.nn.functional.normalize(embeddings, dim=-1)
    relevance, valid = ranking.relevance_of(labels)
    return ranking.average_precision(unit @ unit.T, relevance, valid).mean().item()


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    is_seen = torch.isin(labels, torch.tensor(SEEN))
    images_seen, labels_seen = images[is_seen], labels[is_seen]

    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1),
        torch.nn.BatchNorm2d(64),
        torch.nn.ReLU(),
        torch.nn.AdaptiveMaxPool2d(2),
        torch.nn.Flatten(),
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = RankingLoss()  # the best that is known of mAP-DLM

    def report(step: int) -> None:
        model.eval()
        with torch.no_grad():
            seen = mean_average_precision(model(images_seen), labels_seen)
            unseen = mean_average_precision(model(images[~is_seen]), labels[~is_seen])
        model.train()
        print(f"step {step:4d}   mAP on digits seen in training {seen:.3f}   on digits never seen {unseen:.3f}")

    print(f"training on digits {SEEN}, retrieving {UNSEEN} as well")
    for step in range(STEPS):
        if step % 100 == 0:
            report(step)
        chosen = torch.randperm(len(labels_seen), generator=generator)[:BATCH]
        optimiser.zero_grad()
        loss_of(model(images_seen[chosen]), labels_seen[chosen]).backward()
        optimiser.step()
    report(STEPS)


if __name__ == "__main__":
    main()
