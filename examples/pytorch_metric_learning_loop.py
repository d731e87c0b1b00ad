"""RankingLoss beside a loss of pytorch-metric-learning, with that library's sampler and tester. mAP on classes never seen.

pip install pytorch-metric-learning scikit-learn
"""

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import MultipleLosses, SupConLoss
from pytorch_metric_learning.samplers import MPerClassSampler
from pytorch_metric_learning.testers import GlobalEmbeddingSpaceTester
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from rankshot.integrations.pml import adapt
from rankshot.losses import RankingLoss
from rankshot.models import Conv4

STEPS, BATCH = 150, 112


def main() -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    images, is_seen = torch.nn.functional.interpolate(images, scale_factor=2), labels < 7  # 7, 8 and 9 are never seen
    seen, unseen = (TensorDataset(images[which], labels[which]) for which in (is_seen, ~is_seen))

    model = Conv4(in_channels=1, filters=32)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    ours = adapt(RankingLoss.paper())  # with so few classes it learns more than RankingLoss()
    loss_of = MultipleLosses([ours, SupConLoss()], weights=[1.0, 0.1])
    sampler = MPerClassSampler(labels[is_seen], m=16, batch_size=BATCH, length_before_new_iter=STEPS * BATCH)

    nearest = CustomKNN(CosineSimilarity())  # in place of FAISS, which need not be installed
    calculator = AccuracyCalculator(include=("mean_average_precision",), k=None, knn_func=nearest)
    tester = GlobalEmbeddingSpaceTester(accuracy_calculator=calculator, dataloader_num_workers=0)

    def mean_average_precision() -> float:
        return tester.test({"unseen": unseen}, 0, model)["unseen"]["mean_average_precision_level0"]

    before = mean_average_precision()
    model.train()
    for batch_images, batch_labels in DataLoader(seen, batch_size=BATCH, sampler=sampler):
        optimiser.zero_grad()
        loss_of(model(batch_images), batch_labels).backward()
        optimiser.step()
    after = mean_average_precision()
    print(f"mAP on digits never seen: {before:.3f} before, {after:.3f} after {STEPS} updates")


if __name__ == "__main__":
    main()
