#!/usr/bin/env python3
"""Opens timelines with the readers of their formats, and compares the spans with `tracewalk interrupts --functions
--format json` of the same capture.

    formats.py CHROMIUM FOLDER

FOLDER holds timeline.pftrace, timeline.json, ctf/ and interrupts.json. Readers: Perfetto's trace processor for the first
two, babeltrace2 for the third.
"""

import json
import pathlib
import re
import subprocess
import sys
from collections import defaultdict

import jsonschema
import trace_processor

SLICES = """
    select slice.name, slice.category, slice.ts, slice.dur, track.name as track,
        coalesce(extract_arg(slice.arg_set_id, 'debug.start'), extract_arg(slice.arg_set_id, 'args.start')) as began,
        coalesce(extract_arg(slice.arg_set_id, 'debug.end'), extract_arg(slice.arg_set_id, 'args.end')) as ended
    from slice join track on slice.track_id = track.id
"""
PROBLEMS = "select name, value from stats where severity in ('error', 'data_loss') and value != 0"
PROCESSES = "select name from process where name is not null"

# The used part of the Trace Event Format.
CHROME = {
    "type": "object",
    "required": ["traceEvents", "displayTimeUnit", "otherData"],
    "properties": {
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ph", "pid", "tid"],
                "properties": {
                    "ph": {"enum": ["B", "E", "i", "M"]},
                    "pid": {"type": "integer"},
                    "tid": {"type": "integer"},
                    "ts": {"type": "number", "minimum": 0},
                    "name": {"type": "string"},
                    "cat": {"type": "string"},
                    "s": {"enum": ["g", "p", "t"]},
                    "args": {"type": "object"},
                },
                "additionalProperties": False,
                "allOf": [
                    {"if": {"properties": {"ph": {"const": "M"}}}, "else": {"required": ["ts"]}},
                    {"if": {"properties": {"ph": {"enum": ["B", "i", "M"]}}}, "then": {"required": ["name"]}},
                ],
            },
        }
    },
}


def expected(document):
    """The number of complete spans, their sum, minimum and maximum, by kind and name."""
    found = {}
    for source in document["sources"]:
        for kind, entries in (("exception", source["exceptions"]), ("function", source["functions"])):
            for entry in entries:
                lengths = entry["with_preemption"]
                if lengths["count"]:
                    figures = [lengths[figure] for figure in ("count", "sum", "min", "max")]
                    found[kind, entry["name"]] = figures
    return found


def figures(spans):
    """The same figures, from spans: (kind, name, begin, end, notes on begin and end)."""
    lengths = defaultdict(list)
    for kind, name, begin, end, began, ended in spans:
        whole = began is None and ended in (None, "replaced by another function", "unwound")
        if kind in ("function", "exception") and whole and end is not None:
            lengths[kind, name].append(end - begin)
    return {key: [len(all), sum(all), min(all), max(all)] for key, all in lengths.items()}


def compare(name, found, expected):
    for key in sorted(set(found) | set(expected)):
        assert found.get(key) == expected.get(key), f"{name}: {key}: {found.get(key)}, expected {expected.get(key)}"
    print(f"{name}: {len(found)} exceptions and functions as expected")


def of_slices(rows, factor):
    """The spans of the trace processor's slices; a slice that does not end has the length -1."""
    for row in rows:
        kind = (row["category"] or "").split(",")[0]
        begin, lasts = row["ts"], row["dur"]
        assert begin % factor == 0 and lasts % factor == 0, row
        end = (begin + lasts) // factor if lasts >= 0 else None
        yield kind, row["name"], begin // factor, end, row["began"], row["ended"]


def perfetto(chromium, file):
    problems, processes, rows = trace_processor.query(chromium, file.read_bytes(), PROBLEMS, PROCESSES, SLICES)
    assert not problems, problems
    return processes, rows


def chrome(file):
    """The spans, by the format's rule: an E ends the innermost B of its thread."""
    document = json.loads(file.read_text())
    jsonschema.Draft202012Validator(CHROME).validate(document)
    open_spans, last, spans = defaultdict(list), defaultdict(float), []
    for event in document["traceEvents"]:
        thread = event["pid"], event["tid"]
        if event["ph"] != "M":
            assert event["ts"] >= last[thread], event
            last[thread] = event["ts"]
        if event["ph"] == "B":
            open_spans[thread].append(event)
        elif event["ph"] == "E":
            begin = open_spans[thread].pop()
            notes = begin.get("args", {}).get("start"), event.get("args", {}).get("end")
            spans.append((begin["cat"], begin["name"], begin["ts"], event["ts"], *notes))
    assert not any(open_spans.values())
    return document, spans


EVENT = re.compile(r'\[(\d+)\] (\w+)_(begin|end): .* track = "(.*)", name = "(.*)", note = "(.*)" }$')


def common_trace_format(folder):
    command = ["babeltrace2", "--clock-cycles", "--no-delta", folder]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    open_spans, spans = defaultdict(list), []
    for line in lines:
        match = EVENT.search(line)
        if not match:
            assert " trigger: " in line or " text: " in line, line
            continue
        at, kind, which, track, name, note = match.groups()
        if which == "begin":
            began = re.search("start not traced|continued", note)
            open_spans[track].append((kind, name, int(at), began and began[0]))
        else:
            begin = open_spans[track].pop()
            assert begin[:2] == (kind, name), line
            spans.append((kind, name, begin[2], int(at), begin[3], note or None))
    assert not any(open_spans.values())
    return spans


def main():
    chromium, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    document = json.loads((folder / "interrupts.json").read_text())
    truth, title = expected(document), document["axis"]["title"]

    processes, rows = perfetto(chromium, folder / "timeline.pftrace")
    assert processes and all(title in process["name"] for process in processes), processes
    compare("Perfetto", figures(of_slices(rows, 1)), truth)

    # Chrome's format has a microsecond per unit of the axis, and the trace processor counts nanoseconds.
    processes, rows = perfetto(chromium, folder / "timeline.json")
    assert processes and all(title in process["name"] for process in processes), processes
    compare("Chrome's format in Perfetto", figures(of_slices(rows, 1000)), truth)

    trace, spans = chrome(folder / "timeline.json")
    assert trace["otherData"]["axis"] == title, trace["otherData"]
    compare("Chrome's format", figures(spans), truth)

    metadata = (folder / "ctf" / "metadata").read_text()
    assert title in metadata
    compare("CTF", figures(common_trace_format(folder / "ctf")), truth)


main()
