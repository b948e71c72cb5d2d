#!/usr/bin/env python3
"""Reads profiles in other tools' formats by their documentation, and prints chains of calls with their costs.

    formats.py speedscope FILE SCHEMA     checked against speedscope's own JSON schema
    formats.py firefox FILE               the "processed profile format": github.com/firefox-devtools/profiler, docs-developer
    formats.py annotate FILE              the output of callgrind_annotate: functions with all columns

prints JSON.
"""

import json
import re
import sys


def speedscope(path, schema):
    import jsonschema

    document = json.load(open(path))
    # The schema uses version 7 of JSON Schema.
    jsonschema.Draft7Validator(json.load(open(schema))).validate(document)
    frames = document["shared"]["frames"]
    profiles = []
    for profile in document["profiles"]:
        chains = {}
        assert len(profile["samples"]) == len(profile["weights"])
        for sample, weight in zip(profile["samples"], profile["weights"]):
            chain = ";".join(frames[index]["name"] for index in sample)
            chains[chain] = chains.get(chain, 0) + weight
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        profiles.append({"name": profile["name"], "unit": profile["unit"], "chains": chains})
    return profiles


def firefox(path):
    document = json.load(open(path))
    meta = document["meta"]
    for key in ("interval", "startTime", "processType", "product", "version", "preprocessedProfileVersion"):
        assert key in meta, key
    assert meta["symbolicated"] is True
    categories = [category["name"] for category in meta["categories"]]
    threads = []
    for thread in document["threads"]:
        strings = thread.get("stringArray") or document["shared"]["stringArray"]
        samples, stacks, frames, functions = (
            thread[name] for name in ("samples", "stackTable", "frameTable", "funcTable")
        )
        for table in (samples, stacks, frames, functions):
            for name, column in table.items():
                if isinstance(column, list):
                    assert len(column) == table["length"], f"{name}: {len(column)} of {table['length']}"
        for index, prefix in enumerate(stacks["prefix"]):
            assert prefix is None or 0 <= prefix < index, "a stack comes after its prefix"
        names, kinds = [], []
        for stack in range(stacks["length"]):
            frame = stacks["frame"][stack]
            name = strings[functions["name"][frames["func"][frame]]]
            prefix = stacks["prefix"][stack]
            names.append((names[prefix] + ";" if prefix is not None else "") + name)
            kinds.append(categories[frames["category"][frame]])
        assert samples["weightType"] == "samples"
        chains, per_kind = {}, {}
        # The last entry marks the end of the last sample.
        assert (samples["stack"].pop(), samples["weight"].pop()) == (None, 0)
        for stack, weight in zip(samples["stack"], samples["weight"]):
            chains[names[stack]] = chains.get(names[stack], 0) + weight
            per_kind[kinds[stack]] = per_kind.get(kinds[stack], 0) + weight
        if "timeDeltas" in samples:
            assert all(delta >= 0 for delta in samples["timeDeltas"])
        else:
            assert samples["time"] == sorted(samples["time"])
        threads.append({"name": thread["name"], "chains": chains, "categories": per_kind})
    return {"product": meta["product"], "threads": threads}


def annotate(path):
    """The table of functions and the totals."""
    functions, total, events = {}, None, None
    for line in open(path):
        if line.startswith("Events shown:"):
            events = line.split()[2:]
        row = re.match(r"^\s*((?:(?:[\d,]+|\.)\s*(?:\(\s*[\d.]+%\))?\s+)+)(\S.*)$", line)
        if row is None or events is None:
            continue
        numbers = [cell.replace(",", "") for cell in re.findall(r"(?<![\d.(])([\d,]+|\.)(?=\s*\(|\s)", row.group(1))]
        if len(numbers) != len(events):
            continue
        values = [0 if number == "." else int(number) for number in numbers]
        if row.group(2).startswith("PROGRAM TOTALS"):
            total = values
        else:
            name = re.match(r"\S*:(.*?)(?: \[.*\])?$", row.group(2))
            if name and name.group(1) not in functions:
                functions[name.group(1)] = values
    return {"events": events, "total": total, "functions": functions}


def main():
    command, *arguments = sys.argv[1:]
    json.dump({"speedscope": speedscope, "firefox": firefox, "annotate": annotate}[command](*arguments), sys.stdout)


if __name__ == "__main__":
    main()
