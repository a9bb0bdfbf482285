"""The projects that are measured: one graph, written for Avow, for make and for ninja.

Every stage of the pipeline reads one small file of the layer before it and writes one, with the same two processes
(`sh` and `head`) for every tool. Its output keeps only the first line of its input, so that a change behind that
line stops at the first stage (early cutoff).
"""

import os
from dataclasses import dataclass
from pathlib import Path

LAYERS = {100: 10, 1_000: 20, 10_000: 50, 100_000: 100}


@dataclass(frozen=True)
class Pipeline:
    """So many layers of so many columns."""

    stages: int

    @property
    def layers(self):
        return LAYERS.get(self.stages, 10)

    @property
    def columns(self):
        return self.stages // self.layers

    def name(self, layer, column):
        return f"l{layer:03}c{column:05}"

    def source(self, column):
        return f"data/c{column:05}.txt"

    def all(self):
        """(name, name of the stage before or None, column), layer by layer."""
        for layer in range(self.layers):
            for column in range(self.columns):
                before = self.name(layer - 1, column) if layer else None
                yield self.name(layer, column), before, column

    def sources(self, folder):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        for column in range(self.columns):
            (folder / self.source(column)).write_text(f"column {column}\nfirst\n")

    def touch_one(self, folder, turn):
        """Changes one source file behind its first line."""
        path = folder / self.source(self.columns // 2)
        path.write_text(f"column {self.columns // 2}\nchange {turn}\n")

    def declared(self, folder):
        """For Avow: every stage declared by itself."""
        out = ["avow: 1", "experiment: pipeline", "stages:"]
        for name, before, column in self.all():
            source = f"{before}.out" if before else self.source(column)
            out += [
                f"  {name}:",
                f"    run: head -n 1 ${{inputs.in}} > ${{outputs.out}}; echo {name} >> ${{outputs.out}}",
                f"    inputs: {{in: {source}}}",
                "    outputs: {out: out}",
            ]
        write(folder / "pipeline.yaml", out)

    def axis(self, folder):
        """For Avow: one stage per layer, over an axis of columns."""
        out = ["avow: 1", "experiment: pipeline", f"axes: {{column: {{range: [0, {self.columns}]}}}}", "stages:"]
        for layer in range(self.layers):
            source = f"l{layer - 1:03}.out" if layer else self.source(0)
            name = f"l{layer:03}"
            out += [
                f"  {name}:",
                f"    run: head -n 1 ${{inputs.in}} > ${{outputs.out}}; echo {name} ${{axes.column}} >> ${{outputs.out}}",
                f"    inputs: {{in: {source}}}",
                "    outputs: {out: out}",
            ]
        write(folder / "pipeline.yaml", out)

    def make(self, folder):
        (folder / "out").mkdir(exist_ok=True)
        names = " ".join(f"out/{name}" for name, _, _ in self.all())
        out = [f"all: {names}", ""]
        for name, before, column in self.all():
            source = f"out/{before}" if before else self.source(column)
            out += [f"out/{name}: {source}", f"\t@head -n 1 {source} > $@; echo {name} >> $@", ""]
        write(folder / "Makefile", out)

    def ninja(self, folder, restat=False):
        (folder / "out").mkdir(exist_ok=True)
        command = "head -n 1 $in > $out; echo $name >> $out"
        if restat:
            command = (
                "head -n 1 $in > $out.new; echo $name >> $out.new; "
                "if cmp -s $out.new $out; then rm $out.new; else mv $out.new $out; fi"
            )
        out = ["rule stage", f"  command = {command}", *(["  restat = 1"] if restat else []), ""]
        for name, before, column in self.all():
            source = f"out/{before}" if before else self.source(column)
            out += [f"build out/{name}: stage {source}", f"  name = {name}"]
        write(folder / "build.ninja", out)

    def commands(self):
        """(command, folder) of the bare spawn: what every tool has to start at least."""
        for name, before, column in self.all():
            source = f"out/{before}" if before else self.source(column)
            yield f"head -n 1 {source} > out/{name}; echo {name} >> out/{name}"


@dataclass(frozen=True)
class Sweep:
    """So many points of (train, measure)."""

    points: int

    def avow(self, folder):
        write(
            folder / "sweep.yaml",
            [
                "avow: 1",
                "experiment: sweep",
                f"axes: {{point: {{range: [0, {self.points}]}}}}",
                "stages:",
                "  train:",
                "    run: echo model ${axes.point} > ${outputs.model}",
                "    outputs: {model: model.txt}",
                "  measure:",
                "    run: 'read name point < ${inputs.model}; echo \"{\\\"score\\\": $point}\" > scores.json'",
                "    inputs: {model: train.model}",
                "    measurements: {scores: scores.json}",
            ],
        )

    def make(self, folder):
        (folder / "out").mkdir(exist_ok=True)
        out = ["all: " + " ".join(f"out/{i}.json" for i in range(self.points)), ""]
        for i in range(self.points):
            out += [f"out/{i}.model:", f"\t@echo model {i} > $@", ""]
            out += [f"out/{i}.json: out/{i}.model", "\t@read name point < $<; echo \"{\\\"score\\\": $$point}\" > $@", ""]
        write(folder / "Makefile", out)

    def ninja(self, folder):
        (folder / "out").mkdir(exist_ok=True)
        out = ["rule train", "  command = echo model $point > $out", "rule measure"]
        out += ["  command = read name point < $in; echo \"{\\\"score\\\": $$point}\" > $out", ""]
        for i in range(self.points):
            out += [f"build out/{i}.model: train", f"  point = {i}", f"build out/{i}.json: measure out/{i}.model"]
        write(folder / "build.ninja", out)


def cells(folder, side):
    """A plan of side³ cells."""
    axes = ", ".join(f"{name}: {{range: [0, {side}]}}" for name in "abc")
    write(
        folder / "cells.yaml",
        [
            "avow: 1",
            "experiment: cells",
            f"axes: {{{axes}}}",
            "stages:",
            "  cell:",
            "    run: echo ${axes.a} ${axes.b} ${axes.c} > ${outputs.out}",
            "    outputs: {out: out}",
        ],
    )


def data_spec(folder, path, turn=0):
    """One stage that reads a file or folder and does nothing with it; another one at every turn."""
    write(
        folder / "data.yaml",
        [
            "avow: 1",
            "experiment: data",
            "stages:",
            "  look:",
            f"    run: echo seen {turn} > ${{outputs.out}}",
            f"    inputs: {{data: {path}}}",
            "    outputs: {out: out}",
        ],
    )


#: A measurement of the project below, in AWK and in Python: six digits that look random and are the same everywhere.
HISTORY = """BEGIN {
  print "epoch,loss,accuracy"
  for (epoch = 0; epoch < epochs; epoch++) {
    place = member * epochs + epoch
    printf "%d,%.6f,%.6f\\n", epoch, (place * 7919 % 1000003) / 1000003, (place * 6007 % 1000003) / 1000003
  }
}
"""


def long_paper(folder, members, epochs):
    """An experiment whose members measure two things in each epoch, and a manuscript with 2,000 numbers on sixty pages,
    half of which were measured."""
    (folder / "avow.toml").write_text("")
    (folder / "history.awk").write_text(HISTORY)
    half = members // 2
    (folder / "paper.yaml").write_text(
        "avow: 1\nexperiment: paper\n"
        f"axes: {{decay: [0, 1], seed: {{range: [0, {half}]}}}}\n"
        "params: {half: %d, epochs: %d}\nstages:\n  train:\n"
        "    run: 'awk -v epochs=${params.epochs} -v member=$((${axes.decay} * ${params.half} + ${axes.seed}))"
        " -f history.awk > ${outputs.history}'\n    environment: none\n"
        "    measurements: [{file: history.csv, values: [loss, accuracy], keys: [epoch]}]\n"
        "claims:\n  helps: {says: Decay helps., select: accuracy, reduce: {epoch: max}, compare: {decay: [1, 0]},"
        " rule: {kind: difference, above: 0}}\n" % (half, epochs)
    )
    filler = "The rest of this sentence stands for the prose that a paper has between its results and means nothing. "
    with open(folder / "paper.tex", "w") as paper:
        paper.write("\\documentclass{article}\n\\begin{document}\n")
        for index in range(1000):
            place = index * 617 % (members * epochs)
            value = (place * 6007 % 1000003) / 1000003
            paper.write(f"{filler}{filler}With decay the accuracy was {value:.4f}, against ${value * 0.7:.3f} \\pm 0.01$.\n\n")
        paper.write("\\end{document}\n")


def big_file(path, size):
    """Random bytes, so that no file system can store them in fewer."""
    piece = os.urandom(8 << 20)
    with open(path, "wb") as file:
        for number in range(size // len(piece)):
            # Every piece differs, in its first bytes.
            file.write(number.to_bytes(8, "little") + piece[8:])


def many_files(folder, count, size):
    folder.mkdir(parents=True, exist_ok=True)
    piece = os.urandom(size)
    for number in range(count):
        (folder / f"f{number:06}").write_bytes(number.to_bytes(8, "little") + piece[8:])


def write(path, lines):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(lines) + "\n")
