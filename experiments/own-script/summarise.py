"""Reads the gathered traces of all seeds and writes how far the estimates still are from one another."""

import json
import os
import pathlib
import statistics
import sys

folder, out = pathlib.Path(sys.argv[1]), sys.argv[2]
digits = int(os.environ["DIGITS"])
finals = {}
for entry in json.loads((folder / "index.json").read_text()):
    for step in (folder / entry["path"]).iterdir():
        finals.setdefault(int(step.stem), []).append(float(step.read_text()))
with open(out, "w") as file:
    for points, values in sorted(finals.items()):
        spread = round(statistics.stdev(values), digits)
        file.write(json.dumps({"name": "spread", "value": spread, "points": points}) + "\n")
