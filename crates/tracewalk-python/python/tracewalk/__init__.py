"""Decodes the CoreSight trace of an Arm processor.

>>> import tracewalk
>>> session = tracewalk.open("capture.toml", image="firmware.elf")  # doctest: +SKIP
>>> session.coverage().lines.to_pandas()  # doctest: +SKIP

A session is an open capture. Its methods return answers. An answer holds Arrow tables, which pandas, polars, pyarrow and DuckDB read
directly. The tables have the columns that the command `tracewalk` writes (`tracewalk help formats`).
"""

from tracewalk._native import (
    Answer,
    Counts,
    Coverage,
    Crash,
    Diff,
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
    Tasks,
    Timeline,
    TracewalkError,
    TracewalkWarning,
    __version__,
    diff,
    gather,
    open,
    read,
)

__all__ = [
    "Answer",
    "Counts",
    "Coverage",
    "Crash",
    "Diff",
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
    "Tasks",
    "Timeline",
    "TracewalkError",
    "TracewalkWarning",
    "__version__",
    "diff",
    "gather",
    "open",
    "read",
]
