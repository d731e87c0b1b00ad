"""The version of the package, where everybody may ask for it."""

__version__ = "0.1.0"
