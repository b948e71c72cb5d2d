"""What an Arm processor executed, from its CoreSight trace.

>>> import tracewalk
>>> session = tracewalk.open("capture.toml", image="firmware.elf")  # doctest: +SKIP
>>> session.coverage().lines.to_pandas()  # doctest: +SKIP

A session is an open capture. Its methods give answers; an answer has tables of Arrow's columns, which pandas, polars, pyarrow and
DuckDB take as they are. The columns are those of the command `tracewalk` (docs/formats.md).
"""

from tracewalk._native import (
    Answer,
    Counts,
    Coverage,
    Crash,
    Flow,
    Gathered,
    Info,
    Interrupts,
    Notice,
    Profile,
    Programs,
    Session,
    Source,
    Table,
    Timeline,
    TracewalkError,
    TracewalkWarning,
    __version__,
    gather,
    open,
    read,
)

__all__ = [
    "Answer",
    "Counts",
    "Coverage",
    "Crash",
    "Flow",
    "Gathered",
    "Info",
    "Interrupts",
    "Notice",
    "Profile",
    "Programs",
    "Session",
    "Source",
    "Table",
    "Timeline",
    "TracewalkError",
    "TracewalkWarning",
    "__version__",
    "gather",
    "open",
    "read",
]
