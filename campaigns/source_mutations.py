"""`python -m campaigns.source_mutations [PACKAGE …]`: small wrong changes to the source, which tests must notice.

Each is made in a copy of the repository, and the quick tests of its package run there until one fails. Prints who was not
noticed; the exit code is 1 then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# package -> file, what stands there, and what is put in its place
MUTATIONS: dict[str, list[tuple[str, str, str]]] = {
    "ranking": [
        ("metrics.py", "loss=lambda k, n: n / (k + n),", "loss=lambda k, n: n / (k + n + 1),"),
        ("metrics.py", "return 1 / torch.log2(1 + rank)", "return 1 / torch.log2(2 + rank)"),
        ("metrics.py", "((k <= cutoff) & (k + n > cutoff))", "((k <= cutoff) & (k + n >= cutoff))"),
        ("metrics.py", "scale=lambda P, N, k: 1 / (P * N),", "scale=lambda P, N, k: 1 / (P + N),"),
        ("solvers.py", "improved = best.gt_(cheapest).mul_(m)", "improved = best.ge_(cheapest).mul_(m)"),
        ("sorted_rows_kernel.py", "tl.where(cost < best, count, m)", "tl.where(cost <= best, count, m)"),
        ("solvers.py", "probe = (low + high + 1) // 2", "probe = (low + high) // 2"),
        ("objectives.py", "alpha = 10.0 if sign > 0 else 1.0", "alpha = 10.0"),
        ("objectives.py", "Reference(chosen.sign / chosen.epsilon,", "Reference(1 / chosen.epsilon,"),
        ("sorted_pool.py", "right=True)", "right=False)"),
        ("pool.py", "Counts(relevant - itself,", "Counts(relevant,"),
        ("pool.py", "& (ref_ids != EMPTY)", ""),
    ],
    "losses": [
        ("nca_loss.py", "(2 * cosines - 2) / self.temperature", "(2 * cosines - 2) * self.temperature"),
        ("lmnn_loss.py", "(1 - self.push) * target.sum(-1)", "self.push * target.sum(-1)"),
        ("triplet_loss.py", "self.margin + distances - negative", "distances - negative"),
        ("smooth_ap_loss.py", "torch.bmm(above, counted) + 0.5", "torch.bmm(above, counted)"),
        ("fast_ap_loss.py", "relevant * up_to / all_up_to", "relevant * up_to / up_to"),
        ("supcon_loss.py", "/ self.temperature", "* self.temperature"),
        ("siamese_loss.py", "offset=1", "offset=0"),
        ("ranking_loss.py", "scale /= scale.sum().clamp(min=1)", "scale /= len(scale)"),
        (
            "ranking_loss.py",
            "coarse_alpha), 0.0, self.coarse_weight))",
            "coarse_alpha), 0.0, 1.0))",
        ),
        ("ranking_loss.py", "ids: tuple[Tensor, Tensor] | None = (every, every)", "ids = None"),
        ("cross_batch_memory.py", "self.added += len(embeddings)", "pass"),
        ("gathered.py", "total * (len(sizes) / of_all)", "total / of_all"),
        ("gathered.py", "of_all = sums[1].clamp(min=1)", "of_all = count.clamp(min=1)"),
    ],
    "training": [
        ("sections.py", "self.decay ** (update // self.decay_every)", "self.decay ** (update // self.decay_every + 1)"),
        ("sections.py", "min(1.0, (update + 1) / self.warm_up)", "min(1.0, update / self.warm_up)"),
        ("optimiser.py", "config.weight_decay if id(weight) in shrinks else 0.0", "config.weight_decay"),
        (
            "optimiser.py",
            "config.trunk_rate * of_trunk[id(weight)] if id(weight) in of_trunk else 1.0",
            "config.trunk_rate",
        ),
        ("optimiser.py", "module.eval()", "pass"),
        ("micro_batches.py", "put_back(statistics_of(network))", "put_back({})"),
        ("state.py", "share = 1 - self.factor**updates", "share = 1.0"),
        ("loop.py", "score > self.status.best", "score > -1"),
        ("loop.py", "patience * self.config.validation.every", "patience"),
        ("run_folder.py", 'if line["update"] <= update]', 'if line["update"] < update]'),
        ("assembly.py", "with _seeded(config.run.seed):", "with _seeded(0):"),
    ],
    "methods": [
        ("prototypical.py", "means = support.mean(2)", "means = support[:, :, 0]"),
        ("matching.py", ".logsumexp(-1)", ".amax(-1)"),
        ("matching.py", "memory.tanh() + plain", "memory.tanh()"),
        ("nearest.py", ".amax(-1)", ".mean(-1)"),
        ("baseline_plus.py", "shares - self.rate * inverse", "shares + self.rate * inverse"),
        ("memory.py", "(self.keys.gather(1, index) + keys)", "(self.keys.gather(1, index))"),
        ("memory.py", "(self.margin + (normalised", "(0 * self.margin + (normalised"),
        ("maml.py", "alpha=-self.rate", "alpha=self.rate"),
        ("glimpse.py", "(1 - near) * numbers", "(1 + near) * numbers"),
        ("arc.py", "(same, same.roll(1, 0))", "(same, same)"),
        ("arc.py", "asked * labelled) * labelled + pairs", "asked * labelled) + pairs"),
        ("meta_lstm.py", "forget.squeeze(-1) * theta - enter", "forget.squeeze(-1) * theta + enter"),
        (
            "episodic.py",
            "episodes[:, :, : self.shot], episodes[:, :, self.shot :]",
            "episodes[:, :, : self.shot], episodes",
        ),
    ],
    "gallery": [
        ("nearest.py", "where + start", "where"),
        ("nearest.py", "similarities.masked_fill_(hidden[part], -torch.inf)", "pass"),
        ("nearest.py", "order = values[row].sort(descending=True, stable=True)", "continue"),
        ("rejection.py", "sums[labels] - support", "sums[labels]"),
        ("rejection.py", "(strangers >= threshold)", "(strangers < threshold)"),
        ("filters.py", "metadata[name] in values", "metadata[name] not in values"),
        ("filters.py", "abs(value) < 2**53", "abs(value) < 2**63"),
        ("one_shot.py", "embeddings[:, None, :-1, 0]", "embeddings[:, None, :, 0]"),
        ("sources.py", "now.digest != before.digest", "now.digest == before.digest"),
        ("embedder.py", ".to(like.dtype) / 255", ".to(like.dtype) / 256"),
    ],
}


def noticed(copy: Path, package: str, file: str, before: str, after: str) -> bool:
    """Whether a test fails with the change; the copy is as it was then."""
    path = copy / "src" / "rankshot" / package / file
    text = path.read_text()
    if text.count(before) < 1:
        raise ValueError(f"{package}/{file} has no {before!r} any more: choose another change")
    path.write_text(text.replace(before, after))
    own = f"tests/{package}/test_{file}"
    tries = [[own]] * (copy / own).is_file() + [["-n", "2", f"tests/{package}"]]  # the tests of the file itself first
    try:
        return any(not _passes(copy, arguments) for arguments in tries)
    finally:
        path.write_text(text)


def _passes(copy: Path, arguments: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == 0


def main(packages: list[str]) -> int:
    missed = 0
    with tempfile.TemporaryDirectory(prefix="rankshot-mutations-") as folder:
        copy = Path(folder) / "copy"
        leave_out = shutil.ignore_patterns(".git", ".venv", "runs", "*_cache", ".gpu*", "site")
        shutil.copytree(ROOT, copy, ignore=leave_out, symlinks=True)
        for package in packages or list(MUTATIONS):
            results = [noticed(copy, package, *mutation) for mutation in MUTATIONS[package]]
            for (file, before, after), is_noticed in zip(MUTATIONS[package], results, strict=True):
                if not is_noticed:
                    print(f"not noticed: {package}/{file}: {before} -> {after}", flush=True)
            missed += len(results) - sum(results)
            print(f"{package}: {sum(results)} of {len(results)} were noticed", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
