"""What people look at: tables, learning curves, pictures of retrievals."""

from .measured import (
    Measured,
    Protocol,
    measure,
    measure_untrained,
    names_of,
    place_of_report,
    protocol_for,
    record,
    unseen_protocol,
)
from .page import write_report
from .table import text_table

__all__ = [
    "Measured",
    "Protocol",
    "measure",
    "measure_untrained",
    "names_of",
    "place_of_report",
    "protocol_for",
    "record",
    "text_table",
    "unseen_protocol",
    "write_report",
]
