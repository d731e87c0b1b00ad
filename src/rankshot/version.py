"""The version of the package, where everybody may ask for it."""

__version__ = "0.1.0"
"""The version of the package."""
FORMAT = 3  # of config.json


def check_format(version: int) -> None:
    """Complain of a file that a later version wrote, or none."""
    if version > FORMAT:
        raise ValueError(f"its format {version} is newer than this version of rankshot, which knows up to {FORMAT}")
    if version < 1:
        raise ValueError(f"its format must be from 1 to {FORMAT}, got {version}")
