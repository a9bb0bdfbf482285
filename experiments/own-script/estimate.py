"""Estimates pi by throwing points at a square; with `--source system` the operating system throws them."""

import argparse
import json
import pathlib
import random


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--source", choices=["seeded", "system"], required=True)
    parser.add_argument("--trace", required=True, help="a folder for the intermediate estimates")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()

    generator = random.Random(options.seed) if options.source == "seeded" else random.SystemRandom()
    folder = pathlib.Path(options.trace)
    folder.mkdir(parents=True)
    inside = 0
    for thrown in range(1, options.points + 1):
        inside += generator.random() ** 2 + generator.random() ** 2 < 1
        if thrown * 4 % options.points == 0:
            (folder / f"{thrown}.txt").write_text(f"{4 * inside / thrown}\n")
    with open(options.out, "w") as file:
        json.dump({"pi": 4 * inside / options.points}, file)


main()
