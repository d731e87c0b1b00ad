"""Campaigns against the whole: hostile inputs (`python -m campaigns.fuzz`), and crashes (`python -m campaigns.crash`)."""
