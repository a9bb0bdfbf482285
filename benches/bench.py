#!/usr/bin/env python3
"""Measures Avow beside make, ninja, b3sum and cp, and compares the ratios with the budget.

    just bench                      every row, in under 12 minutes; what no longer fits is named
    just bench --quick              everything small, in under a minute: shows that the rows work, not how fast
    just bench pipeline --sizes 1000 10000
    just bench --write docs/performance.md --numpy ~/venv/bin/python

Absolute times differ between machines and hours, so every anchor runs in the same call, in turn with Avow, with the
same number of jobs. Times are medians of whole commands, from start to exit, of a release build.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from rows import ROWS, Bench  # noqa: E402
from timing import JOBS, Failed  # noqa: E402

ROOT = Path(__file__).parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which rows: {', '.join(ROWS)}; all where none is named")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000], metavar="N", help="stages of the pipeline")
    parser.add_argument("--rounds", type=int, default=5, help="how often each command is run")
    parser.add_argument("--gigabytes", type=float, default=4, help="size of the large file in GiB")
    parser.add_argument("--files", type=int, default=20_000, help="how many small files")
    parser.add_argument("--quick", action="store_true", help="everything small: shows that the rows work, not how fast")
    parser.add_argument("--avow", type=Path, help="the program; built from this folder where none is given")
    parser.add_argument("--work", type=Path, help="where the projects are made; a temporary folder where none is given")
    parser.add_argument("--minutes", type=float, default=12, help="no row is begun that would probably end later")
    parser.add_argument("--numpy", type=Path, help="a Python with NumPy, the anchor of the numeric operations")
    parser.add_argument("--dispatch", type=Path, help="the example `dispatch` of avow-exec; built where none is given")
    parser.add_argument("--write", type=Path, help="replace the table between the two marks in this file")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args()
    for row in chosen.rows:
        if row not in ROWS:
            parser.error(f"no row is called `{row}`; there are {', '.join(ROWS)}")
    if chosen.quick:
        chosen.sizes, chosen.rounds, chosen.gigabytes, chosen.files = [100], 1, 1 / 16, 500
        chosen.rows = chosen.rows or [row for row in ROWS if row not in ("large", "dispatch")]
    return chosen


def build(*what):
    """Builds for release; the folder of programs."""
    subprocess.run(["cargo", "build", "--release", "-q", *what], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


def shown_budget(result):
    if result.budget is None:
        return "", ""
    budget = f"{result.budget:g} ×" if result.anchor else f"{result.budget:g} {result.unit}"
    return budget, "met" if result.met else "**missed**"


def table(results):
    yield "| work | Avow | anchor | ratio | budget | |"
    yield "|---|--:|--:|--:|--:|---|"
    for result in results:
        ours = f"{result.ours:.3f} s" if result.unit == "s" else f"{result.ours:.0f} {result.unit}"
        anchor = f"{result.against} {result.anchor:.3f} s" if result.anchor else ""
        ratio = f"{result.measured:.2f}" if result.anchor else ""
        budget, verdict = shown_budget(result)
        note = f"; {result.note}" if result.note else ""
        yield f"| {result.what} | {ours} | {anchor} | {ratio} | {budget} | {verdict}{note} |"


BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def replace_table(path, lines):
    """Writes the table between the marks of a page, and leaves the rest of it alone."""
    before, mark, rest = path.read_text().partition(BEGIN)
    _, closing, after = rest.partition(END)
    if not mark or not closing:
        sys.exit(f"`{path}` has no lines `{BEGIN}` and `{END}`")
    path.write_text("\n".join([before + BEGIN, *lines, END + after]))


#: Minutes that a row takes on the development machine when nothing is asked of it but the usual.
TAKES = {"pipeline": 4, "large": 3, "big": 1, "many": 0.5, "cells": 0.5}


def measure(chosen, bench):
    """All rows that fit; (results, names of those that did not, those that failed and why)."""
    results, left, failed = [], [], []
    began = time.monotonic()
    for name in chosen.rows or ROWS:
        if (time.monotonic() - began) / 60 + (0 if chosen.quick else TAKES.get(name, 0.3)) > chosen.minutes:
            left.append(name)
            continue
        print(f"{name}:", file=sys.stderr, flush=True)
        try:
            for result in ROWS[name](bench):
                results.append(result)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            # What was measured before is worth as much as it was.
            failed.append(f"{name}: {error}")
    return results, left, failed


def machine():
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, {JOBS} jobs, Python {platform.python_version()}"


def main():
    chosen = arguments()
    wanted = ["make", "ninja", "b3sum", "cp"]
    absent = [program for program in wanted if shutil.which(program) is None]
    if absent:
        sys.exit(f"these are measured against and not on PATH: {', '.join(absent)}")
    avow = (chosen.avow or build("-p", "avow-cli") / "avow").resolve()
    rows = chosen.rows or ROWS
    dispatch = chosen.dispatch and chosen.dispatch.resolve()
    if "dispatch" in rows and dispatch is None and chosen.avow is None:
        dispatch = build("-p", "avow-exec", "--example", "dispatch") / "examples" / "dispatch"
    with tempfile.TemporaryDirectory(prefix="avow-bench-", dir=chosen.work, ignore_cleanup_errors=True) as work:
        bench = Bench(avow, work, chosen.rounds, chosen.sizes, chosen.gigabytes, chosen.files)
        # Not resolved: a virtual environment's Python is a link, and knows its packages by where the link is.
        bench.numpy, bench.dispatch = chosen.numpy and chosen.numpy.absolute(), dispatch
        results, left, failed = measure(chosen, bench)
    budgeted = [result for result in results if result.budget is not None]
    within = sum(result.met for result in budgeted)
    lines = [machine() + "; medians", "", *table(results), ""]
    lines.append(f"{within} of {len(budgeted)} rows within the budget.")
    skipped = [*left, *bench.left]
    if skipped:
        lines.append(f"Not measured: {', '.join(skipped)}.")
    print("\n".join(lines))
    if chosen.write:
        replace_table(chosen.write, lines)
    if chosen.json:
        chosen.json.write_text(json.dumps([vars(result) for result in results], indent=1) + "\n")
    if failed:
        sys.exit("\n".join(["a measured program failed:", *failed]))


if __name__ == "__main__":
    main()
