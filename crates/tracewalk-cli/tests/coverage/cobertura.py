#!/usr/bin/env python3
"""Validates a Cobertura document against its DTD, and prints its lines for a test to compare: {file: {line: [hits, branches]}}."""

import json
import sys

from lxml import etree

dtd, document = sys.argv[1:]
tree = etree.parse(document)
dtd = etree.DTD(open(dtd))
if not dtd.validate(tree):
    sys.exit("\n".join(str(entry) for entry in dtd.error_log))
root = tree.getroot()
lines, found, covered = {}, 0, 0
for package in root.iter("package"):
    for item in package.find("classes"):
        assert item.get("filename") == "/".join(p for p in (package.get("name"), item.get("name")) if p != "."), item.attrib
        of_file = lines.setdefault(item.get("filename"), {})
        for line in item.find("lines"):
            hits = int(line.get("hits"))
            found, covered = found + 1, covered + (hits > 0)
            branches = None
            if line.get("branch") == "true":
                branches = line.get("condition-coverage").split("(")[1].rstrip(")")
                assert len(line.find("conditions")) > 0
            of_file[int(line.get("number"))] = [hits, branches]
        for method in item.find("methods"):
            for line in method.find("lines"):
                assert int(line.get("hits")) <= of_file[int(line.get("number"))][0], method.attrib
assert (int(root.get("lines-valid")), int(root.get("lines-covered"))) == (found, covered)
assert abs(float(root.get("line-rate")) - covered / found) < 0.0001
print(json.dumps({"source": root.findtext("sources/source"), "lines": lines}))
