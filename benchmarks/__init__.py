"""Ratios against peers and baselines, measured side by side in one run: `make bench`."""
