"""Compares Parquet files with the CSV of the same tables, with pyarrow, DuckDB and polars.

Arguments: pairs of files, CSV and Parquet. Prints one JSON object for each pair: the table's name and version, whether the table is
complete, the columns' kinds, and the number of equal rows.
"""

import csv
import json
import sys

import duckdb
import polars
import pyarrow.parquet

TYPES = {
    "integer": "uint64",
    "time": "uint64",
    "address": "uint64",
    "number": "double",
    "text": "string",
    "flag": "bool",
}


def same(kind, text, value):
    """Whether a CSV cell and a Parquet value are equal."""
    if value is None:
        return text == ""
    if kind == "address":
        return text.startswith("0x") and int(text, 16) == value
    if kind == "number":
        return text == f"{value:.3f}"
    if kind == "flag":
        return text == ("true" if value else "false")
    return text == str(value)


def compare(comma_separated, parquet):
    table = pyarrow.parquet.read_table(parquet)
    metadata = pyarrow.parquet.read_metadata(parquet).metadata
    with open(comma_separated, newline="", encoding="utf-8") as file:
        names, *expected = csv.reader(file)
    assert table.column_names == names, (parquet, table.column_names, names)
    kinds = [field.metadata[b"kind"].decode() for field in table.schema]
    for field, kind in zip(table.schema, kinds):
        assert str(field.type) == TYPES[kind], (parquet, field)
    rows = list(zip(*(column.to_pylist() for column in table.columns))) if table.num_rows else []
    assert len(rows) == len(expected), (parquet, len(rows), len(expected))
    for row, cells in zip(rows, expected):
        for name, kind, value, text in zip(names, kinds, row, cells):
            assert same(kind, text, value), (parquet, name, text, value)
    assert polars.read_parquet(parquet).rows() == rows, (parquet, "polars")
    assert duckdb.sql(f"select * from read_parquet('{parquet}')").fetchall() == rows, (parquet, "DuckDB")
    return {
        "table": metadata[b"tracewalk.table"].decode(),
        "version": int(metadata[b"tracewalk.version"]),
        "complete": metadata[b"tracewalk.complete"] == b"true",
        "kinds": kinds,
        "rows": len(rows),
    }


arguments = sys.argv[1:]
for pair in zip(arguments[::2], arguments[1::2]):
    print(json.dumps(compare(*pair)))
