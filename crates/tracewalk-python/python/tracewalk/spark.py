"""Gathers many captures on a Spark cluster.

>>> import tracewalk.spark  # doctest: +SKIP
>>> gathered = tracewalk.spark.counts(spark, paths, images=["firmware.elf"])  # doctest: +SKIP
>>> gathered.ranges.orderBy("count", ascending=False).show()  # doctest: +SKIP
>>> gathered.captures.where("outcome = 'left_out'").show()  # doctest: +SKIP

The driver sends workers paths, not bytes, so all workers must see the same file system. A capture that cannot be read is a row of
`captures`; the others count. The result equals that of the command on one machine.

The driver needs pyspark 4 with pandas and pyarrow (`pip install 'tracewalk[spark]'`); the workers also need tracewalk.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

import tracewalk

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Gathered", "counts", "coverage"]

# The number of captures that are gathered at a time.
_CHUNK = 256

# The rows of the first stage: one for each program of a partition, and one for each capture.
_SUM = {"part": "string", "program": "string", "images": "array<string>", "saved": "binary"}
_CAPTURE = {
    "capture": "string",
    "outcome": "string",
    "sources": "bigint",
    "bytes": "bigint",
    "instructions": "bigint",
    "gaps": "bigint",
    "warnings": "bigint",
    "error": "string",
    "message": "string",
}
_PARTS = ", ".join(f"{name} {kind}" for name, kind in (_SUM | _CAPTURE).items())

# This worker's cache of programs, which serves all of its captures.
_PROGRAMS = tracewalk.Programs()

_Answer = Literal["counts", "coverage"]
_Chunk = tuple[tracewalk.Gathered | None, list[dict[str, Any]]]


class Gathered:
    """The sum of many captures, as Spark data frames.

    The first data frame that is evaluated decodes the captures. Spark caches the sums, so later ones do not decode again.
    """

    def __init__(self, parts: DataFrame, answer: _Answer, options: dict[str, Any]) -> None:
        self._parts = parts
        self._answer: _Answer = answer
        self._options = options

    @property
    def captures(self) -> DataFrame:
        """The outcome of each capture, one row each; `error` and `message` say why one was left out or decoded in part."""
        return self._parts.where("part = 'capture'").select(*_CAPTURE)

    def table(self, name: str) -> DataFrame:
        """A table of the answer, by its name (`tracewalk help formats`). Unsigned integers become decimals: Spark has no unsigned type."""
        answer, options = self._answer, self._options
        schema = _schema(_report(tracewalk.gather([], answer=answer), answer, None, {})[name])

        def report(parts: pyarrow.Table) -> pyarrow.Table:
            rows = parts.to_pylist()
            gathered = tracewalk.read(rows[0]["saved"])
            for row in rows[1:]:
                gathered = gathered.merge(tracewalk.read(row["saved"]))
            table = _report(gathered, answer, rows[0]["images"], options)[name].to_pyarrow()
            return table.cast(schema)

        import pyspark.sql.pandas.types as types

        sums = self._parts.where("part = 'program'").select("program", "images", "saved")
        return sums.groupBy("program").applyInArrow(report, types.from_arrow_schema(schema))

    def __getattr__(self, name: str) -> DataFrame:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except KeyError as error:
            raise AttributeError(str(error)) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file that the command's `--save` writes, on this machine."""
        rows = self._parts.where("part = 'program'").select("saved").toLocalIterator()
        gathered = tracewalk.gather([], answer=self._answer)
        for row in rows:
            gathered = gathered.merge(tracewalk.read(bytes(row["saved"])))
        gathered.save(path)

    def unpersist(self) -> None:
        """Drops the cached sums."""
        self._parts.unpersist()


def counts(
    spark: SparkSession,
    captures: DataFrame | Iterable[str | PathLike[str]],
    images: Iterable[str | PathLike[str]] | None = None,
    *,
    partitions: int | None = None,
    isolate: bool = False,
    **options: Any,
) -> Gathered:
    """Execution counts, for each binary: tables `ranges`, `branches` and `sources`.

    `captures` are paths, or a data frame with the column `path`. Its optional column `images`, an array of strings, names the program of
    each capture. Without the column, `images` names the program of all captures; without both, their descriptions do. Captures of the
    same images share a partition. The other options are those of `tracewalk.open`.

    With `isolate`, each partition decodes in separate processes; a capture that crashes its process is a row of `captures`.
    """
    return _gather(spark, captures, "counts", images, partitions, isolate, options)


def coverage(
    spark: SparkSession,
    captures: DataFrame | Iterable[str | PathLike[str]],
    images: Iterable[str | PathLike[str]] | None = None,
    *,
    partitions: int | None = None,
    isolate: bool = False,
    **options: Any,
) -> Gathered:
    """The coverage of the programs: tables `files`, `functions`, `lines` and `branches`.

    The arguments are those of `counts`. The report needs the programs' symbols and line tables: name the programs in `images` or in
    the column `images`.
    """
    return _gather(spark, captures, "coverage", images, partitions, isolate, options)


def _gather(
    spark: SparkSession,
    captures: DataFrame | Iterable[str | PathLike[str]],
    answer: _Answer,
    images: Iterable[str | PathLike[str]] | None,
    partitions: int | None,
    isolate: bool,
    options: dict[str, Any],
) -> Gathered:
    from pyspark import StorageLevel
    from pyspark.sql import functions

    # Spark gives each worker one processor.
    options = {"threads": 1, **options}
    named = None if images is None else [fspath(image) for image in images]
    if hasattr(captures, "select"):
        frame: Any = captures
    else:
        frame = spark.createDataFrame([(fspath(path),) for path in captures], "path string")
    if "images" in frame.columns:
        frame = frame.select("path", "images")
    else:
        images_of_all = functions.lit(None) if named is None else functions.array(*map(functions.lit, named))
        frame = frame.select("path", images_of_all.cast("array<string>").alias("images"))
    partitions = partitions or 4 * spark.sparkContext.defaultParallelism
    # Captures of the same program are neighbours, ordered by their names.
    program = functions.concat_ws("\n", "images")
    frame = frame.repartitionByRange(partitions, program, "path")
    parts = frame.mapInArrow(_work(answer, isolate, options), _PARTS)
    return Gathered(parts.persist(StorageLevel.MEMORY_AND_DISK), answer, options)


def _work(answer: _Answer, isolate: bool, options: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that Spark runs on each partition."""

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        kinds = {"string": pyarrow.string(), "bigint": pyarrow.int64(), "binary": pyarrow.binary()}
        kinds["array<string>"] = pyarrow.list_(pyarrow.string())
        schema = pyarrow.schema([(name, kinds[kind]) for name, kind in (_SUM | _CAPTURE).items()])
        # The sums, by the images.
        sums: dict[tuple[str, ...] | None, tracewalk.Gathered] = {}
        for batch in batches:
            wanted: dict[tuple[str, ...] | None, list[str]] = {}
            for row in batch.to_pylist():
                images = None if row["images"] is None else tuple(row["images"])
                wanted.setdefault(images, []).append(row["path"])
            for images, paths in wanted.items():
                for begin in range(0, len(paths), _CHUNK):
                    gather = _apart if isolate else _here
                    found, captures = gather(paths[begin : begin + _CHUNK], answer, images, options)
                    rows = [{"part": "capture", **capture} for capture in captures]
                    yield pyarrow.RecordBatch.from_pylist(rows, schema=schema)
                    if found is not None:
                        sums[images] = sums[images].merge(found) if images in sums else found
        for images, found in sums.items():
            for program, alone in found.by_program():
                row = {"part": "program", "program": program, "images": images and list(images), "saved": alone.to_bytes()}
                yield pyarrow.RecordBatch.from_pylist([row], schema=schema)

    return work


def _here(paths: list[str], answer: _Answer, images: tuple[str, ...] | None, options: dict[str, Any]) -> _Chunk:
    """Gathers captures in this process."""
    found = tracewalk.gather(paths, answer=answer, image=images, programs=_PROGRAMS, **options)
    return found, found.captures.to_pylist()


def _apart(paths: list[str], answer: _Answer, images: tuple[str, ...] | None, options: dict[str, Any]) -> _Chunk:
    """Gathers captures in another process. If the process crashes, finds the capture at fault by decoding each one alone."""
    work = json.dumps({"paths": paths, "answer": answer, "images": images, "options": options}, default=fspath)
    done = subprocess.run([sys.executable, "-m", "tracewalk._apart"], input=work.encode(), capture_output=True, check=False)
    if done.returncode == 0:
        head, _, saved = done.stdout.partition(b"\n")
        return tracewalk.read(saved), json.loads(head)
    if len(paths) > 1:
        sums, captures = None, []
        for path in paths:
            found, rows = _apart([path], answer, images, options)
            captures += rows
            if found is not None:
                sums = found if sums is None else sums.merge(found)
        return sums, captures
    said = done.stderr.decode(errors="replace").strip().splitlines()
    last = said[-1] if said else "no output"
    message = f"{paths[0]}: brought its process down with status {done.returncode}: {last}; report it with the capture"
    row: dict[str, Any] = dict.fromkeys(_CAPTURE)
    return None, [row | {"capture": paths[0], "outcome": "left_out", "warnings": 0, "error": "crashed", "message": message}]


def _report(
    gathered: tracewalk.Gathered, answer: _Answer, images: list[str] | None, options: dict[str, Any]
) -> tracewalk.Answer:
    return gathered.counts() if answer == "counts" else gathered.coverage(image=images, **options)


def _schema(table: tracewalk.Table) -> pyarrow.Schema:
    """The schema of a table in the types that Spark has."""
    import pyarrow

    columns = pyarrow.table(table).schema
    signed = {pyarrow.uint64(): pyarrow.decimal128(20, 0)}
    return pyarrow.schema([pyarrow.field(column.name, signed.get(column.type, column.type)) for column in columns])
