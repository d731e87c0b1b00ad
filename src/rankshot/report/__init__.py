"""What people look at: tables, learning curves, pictures of retrievals.

`protocol_for` says how runs are measured, `measure` measures one, `text_table` and `write_report` show the results.
"""

from .measured import (
    Measured,
    Protocol,
    measure,
    measure_untrained,
    names_of,
    protocol_for,
    record,
    rule_for,
    unseen_protocol,
)
from .page import write_report
from .places import evaluation_path, report_path
from .table import text_table

__all__ = [
    "Measured",
    "Protocol",
    "evaluation_path",
    "measure",
    "measure_untrained",
    "names_of",
    "protocol_for",
    "record",
    "report_path",
    "rule_for",
    "text_table",
    "unseen_protocol",
    "write_report",
]
