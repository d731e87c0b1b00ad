"""The paper's tables and figures from real data: an ordered list of runs, each of which leaves one json."""
