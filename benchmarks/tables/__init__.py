"""Figures for the documentation from what was measured; `python -m benchmarks.tables` puts them into the pages."""
