"""The rows of the budget: each builds its projects, runs Avow beside its anchor, and gives ratios."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import projects
from projects import Pipeline, Sweep
from timing import JOBS, Contender, alternate, once, spawn_all, stat_walk


@dataclass
class Result:
    """One line of the table."""

    what: str
    ours: float
    #: Seconds (or bytes) of the anchor, and its name; none where the budget is absolute.
    anchor: float | None
    against: str
    #: The budget: a ratio where there is an anchor, else in the unit of `ours`; none where nothing was promised.
    budget: float | None
    unit: str = "s"
    note: str = ""

    @property
    def measured(self):
        return self.ours / self.anchor if self.anchor else self.ours

    @property
    def met(self):
        return self.budget is None or self.measured <= self.budget


class Bench:
    """The settings of one call, and the temporary folder it works in."""

    def __init__(self, avow, work, rounds, sizes, gigabytes, files):
        self.avow, self.work, self.rounds = str(avow), Path(work), rounds
        self.sizes, self.gigabytes, self.files = sizes, gigabytes, files
        self.confine = confine_flag(self.avow)
        #: A Python with NumPy, and the program that measures dispatch, where there are any.
        self.numpy = self.dispatch = None
        #: What could not be measured, and why.
        self.left = []
        #: Medians that a later row compares with.
        self.known = {}

    def folder(self, name):
        path = self.work / name
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def run(self, *extra):
        return [self.avow, "-q", "run", "--jobs", str(JOBS), *extra]

    def rounds_for(self, stages):
        """Large rows are stable by themselves, and long."""
        return 1 if stages >= 10_000 else min(self.rounds, 3)


def confine_flag(avow):
    """How this build is told not to confine; nothing where it cannot be told."""
    import subprocess

    text = subprocess.run([avow, "run", "--help"], capture_output=True, text=True, check=True).stdout
    return ["--confine", "none"] if "--confine" in text else None


def forget(folder):
    """Brings an Avow project back to before its first run."""
    shutil.rmtree(folder / ".avow", ignore_errors=True)
    shutil.rmtree(folder / "results", ignore_errors=True)


def empty(folder):
    """The same for make and ninja."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    for name in (".ninja_log", ".ninja_deps"):
        (folder / name).unlink(missing_ok=True)


def pipeline(bench):
    """Cold, nothing to do, one change, plan, memory: at every size, in both ways to write it."""
    for stages in bench.sizes:
        work = Pipeline(stages)
        folders = {name: bench.folder(f"{name}-{stages}") for name in ("declared", "axis", "make", "ninja", "floor")}
        for folder in folders.values():
            work.sources(folder)
        work.declared(folders["declared"])
        work.axis(folders["axis"])
        work.make(folders["make"])
        work.ninja(folders["ninja"], restat=True)
        empty(folders["floor"])
        yield from cold(bench, work, folders)
        yield from warm(bench, work, folders)
        yield from status(bench, work, folders["declared"])
        for folder in folders.values():
            shutil.rmtree(folder)


def cold(bench, work, folders):
    stages, rounds = work.stages, bench.rounds_for(work.stages)

    def avow(name, extra=()):
        return Contender(bench.run(*extra), folders[name], lambda _: forget(folders[name]))

    contenders = {
        "floor": Contender(
            None,
            folders["floor"],
            lambda _: empty(folders["floor"]),
            lambda: spawn_all(work.commands(), folders["floor"]),
        ),
        "make": Contender(["make", "-s", f"-j{JOBS}"], folders["make"], lambda _: empty(folders["make"])),
        "ninja": Contender(["ninja", "--quiet", f"-j{JOBS}"], folders["ninja"], lambda _: empty(folders["ninja"])),
        "axis": avow("axis"),
        "declared": avow("declared"),
    }
    if bench.confine:
        contenders["unconfined axis"] = avow("axis", bench.confine)
        contenders["unconfined declared"] = avow("declared", bench.confine)
        contenders |= {"axis": contenders.pop("axis"), "declared": contenders.pop("declared")}
    samples = alternate(contenders, rounds)
    make, floor = samples["make"].median, samples["floor"].median
    beyond = f"spawn floor {floor:.2f} s; ninja {samples['ninja'].median:.2f} s"
    for name in [name for name in contenders if name.endswith(("axis", "declared"))]:
        budget = 1.35 if name.startswith("unconfined") else 1.6
        ours = samples[name].median
        way = name if name.startswith("unconfined") else f"confined {name}"
        note = f"{ours / floor:.2f} × the floor; {beyond}"
        yield Result(f"cold, {stages:,} stages, {way}", ours, make, "make", budget, note=note)
    for name in ("axis", "declared"):
        memory = samples[name].memory / 1e6
        yield Result(f"peak memory, cold, {stages:,} stages, {name}", memory, None, "", 100, unit="MB")


def warm(bench, work, folders):
    stages, rounds = work.stages, max(bench.rounds_for(work.stages), 3)
    contenders = {
        "make": Contender(["make", "-s", f"-j{JOBS}"], folders["make"]),
        "ninja": Contender(["ninja", "--quiet", f"-j{JOBS}"], folders["ninja"]),
        "axis": Contender(bench.run(), folders["axis"]),
        "declared": Contender(bench.run(), folders["declared"]),
    }
    samples = alternate(contenders, rounds)
    ninja = samples["ninja"].median
    note = f"make {samples['make'].median:.3f} s"
    for name in ("axis", "declared"):
        sample = samples[name]
        bench.known[f"nothing to do, {stages}, {name}"] = sample.median
        yield Result(f"nothing to do, {stages:,} stages, {name}", sample.median, ninja, "ninja", 2, note=note)
        yield Result(
            f"peak memory, nothing to do, {stages:,} stages, {name}", sample.memory / 1e6, None, "", 100, unit="MB"
        )
    yield from changed(bench, work, folders, rounds)
    plans = {
        "ninja": Contender(["ninja", "-n", "--quiet"], folders["ninja"], lambda _: empty(folders["ninja"])),
        "axis": Contender([bench.avow, "-q", "plan"], folders["axis"], lambda _: forget(folders["axis"])),
        "declared": Contender([bench.avow, "-q", "plan"], folders["declared"], lambda _: forget(folders["declared"])),
    }
    samples = alternate(plans, rounds)
    for name in ("axis", "declared"):
        ours = samples[name].median
        yield Result(f"plan before anything ran, {stages:,} stages, {name}", ours, samples["ninja"].median, "ninja -n", None)


def changed(bench, work, folders, rounds):
    """One source file changes so that the output of its reader does not."""

    def change(name):
        return lambda turn: work.touch_one(folders[name], turn)

    contenders = {
        "ninja": Contender(["ninja", "--quiet", f"-j{JOBS}"], folders["ninja"], change("ninja")),
        "declared": Contender(bench.run(), folders["declared"], change("declared")),
    }
    samples = alternate(contenders, rounds)
    ours = samples["declared"].median
    what = f"one stage changed, early cutoff, {work.stages:,} stages, declared"
    yield Result(what, ours, samples["ninja"].median, "ninja with restat", 2)


def sweep(bench):
    """A sweep that grows by ten points."""
    points = 1_000 if max(bench.sizes) >= 1_000 else 50
    folders = {name: bench.folder(f"sweep-{name}") for name in ("avow", "ninja")}
    small, large = Sweep(points), Sweep(points + 10)

    def grow(write, folder, command, clear):
        """Each round begins with a complete smaller sweep."""

        def before(_):
            clear(folder)
            write(small, folder)
            once(command, folder)
            write(large, folder)

        return before

    ninja = ["ninja", "--quiet", f"-j{JOBS}"]
    contenders = {
        "ninja": Contender(ninja, folders["ninja"], grow(Sweep.ninja, folders["ninja"], ninja, empty)),
        "avow": Contender(bench.run(), folders["avow"], grow(Sweep.avow, folders["avow"], bench.run(), forget)),
    }
    samples = alternate(contenders, bench.rounds)
    ours, anchor = samples["avow"].median, samples["ninja"].median
    yield Result(f"sweep of {points:,} points plus ten (20 commands)", ours, anchor, "ninja", 3)


def cells(bench):
    """A symbolic plan, and a hundred of its cells."""
    side = 100 if max(bench.sizes) >= 1_000 else 10
    folder = bench.folder("cells")
    projects.cells(folder, side)
    samples = alternate(
        {
            "check": Contender([bench.avow, "-q", "check", "cells.yaml"], folder),
            "plan": Contender([bench.avow, "-q", "plan"], folder),
            "only": Contender(bench.run("--only", "cell[a=1,b=1]"), folder, lambda _: forget(folder)),
        },
        min(bench.rounds, 3),
    )
    for name, words in (("check", "check"), ("plan", "plan"), ("only", f"run {side} cells (`--only`)")):
        sample = samples[name]
        what = f"{words} of {side**3:,} cells"
        yield Result(what, sample.median, None, "", 5, note=f"{sample.memory / 1e6:.0f} MB")
        yield Result(f"peak memory, {what}", sample.memory / 1e6, None, "", 1074, unit="MB")


def paper(bench):
    """A long manuscript against many measurements, the whole command."""
    members, epochs = (500, 1_000) if max(bench.sizes) >= 1_000 else (20, 50)
    folder = bench.folder("paper")
    projects.long_paper(folder, members, epochs)
    import subprocess

    subprocess.run(bench.run(), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    audit = {"audit": Contender([bench.avow, "-q", "audit", "paper.tex"], folder)}
    sample = alternate(audit, max(bench.rounds, 3))["audit"]
    what = f"audit of 60 pages with 2,000 numbers, {members * epochs * 2:,} measurements"
    yield Result(what, sample.median, None, "", 2, note=f"{sample.memory / 1e6:.0f} MB")


def big(bench):
    """One large file comes into the store, is looked at again, and again after a `touch`."""
    folder = bench.folder("big")
    size = int(bench.gigabytes * (1 << 30))
    projects.big_file(folder / "data.bin", size)
    projects.data_spec(folder, "data.bin")
    copy = folder / "copy.bin"
    shown = f"{bench.gigabytes:g} GiB"
    rounds = min(bench.rounds, 3)
    samples = alternate(
        {
            "cp": Contender(["cp", "data.bin", "copy.bin"], folder, lambda _: copy.unlink(missing_ok=True)),
            "ingest": Contender(bench.run(), folder, lambda _: (copy.unlink(missing_ok=True), forget(folder))),
        },
        rounds,
    )
    yield Result(f"ingest {shown}, cold", samples["ingest"].median, samples["cp"].median, "cp", 1.3)
    samples = alternate(
        {
            "b3sum": Contender(["b3sum", "data.bin"], folder),
            "unchanged": Contender(bench.run(), folder, lambda _: once(bench.run(), folder)),
            "touched": Contender(bench.run(), folder, lambda _: os.utime(folder / "data.bin")),
        },
        rounds,
    )
    ours = samples["unchanged"].median
    yield Result(f"unchanged {shown}, whole `avow run`", ours, None, "", 0.020)
    ours, anchor = samples["touched"].median, samples["b3sum"].median
    yield Result(f"{shown} after `touch`, whole `avow run`", ours, anchor, "b3sum", 1.3)
    shutil.rmtree(folder)


def many(bench):
    """Many small files come into the store, and are looked at again."""
    folder = bench.folder("many")
    projects.many_files(folder / "data", bench.files, 10 << 10)
    projects.data_spec(folder, "data")
    copy = folder / "copy"
    rounds = min(bench.rounds, 3)

    def clear(_):
        shutil.rmtree(copy, ignore_errors=True)

    def another(turn):
        """The stage is another, so that it is carried out again on files that are known."""
        clear(turn)
        projects.data_spec(folder, "data", turn)

    samples = alternate(
        {
            "cp -r": Contender(["cp", "-r", "data", "copy"], folder, clear),
            "ingest and stage": Contender(bench.run(), folder, lambda _: (clear(_), forget(folder))),
            "stage": Contender(bench.run(), folder, another),
        },
        rounds,
    )
    whole, stage = samples["ingest and stage"].median, samples["stage"].median
    note = f"the whole run {whole:.3f} s less {stage:.3f} s of a run that lays out known files for a stage"
    what = f"ingest {bench.files:,} files"
    yield Result(what, max(whole - stage, 0.001), samples["cp -r"].median, "cp -r", 1.3, note=note)
    once(bench.run(), folder)
    samples = alternate(
        {
            "stat walk": Contender(None, folder, work=lambda: stat_walk(folder / "data")),
            "unchanged": Contender(bench.run(), folder),
        },
        max(rounds, 3),
    )
    ours, anchor = samples["unchanged"].median, samples["stat walk"].median
    yield Result(f"unchanged {bench.files:,} files, whole `avow run`", ours, anchor, "stat walk", 3)
    shutil.rmtree(folder)


def status(bench, work, folder):
    """How long it takes to say where a project stands."""
    contender = Contender([bench.avow, "-q", "status"], folder)
    sample = alternate({"status": contender}, max(bench.rounds, 3))["status"]
    yield Result(f"`avow status` after runs of {work.stages:,} stages", sample.median, None, "", 0.030)


def start(bench):
    """How long it takes to say anything at all."""
    folder = bench.folder("start")
    sample = alternate({"version": Contender([bench.avow, "--version"], folder)}, max(bench.rounds, 5))["version"]
    yield Result("`avow --version`", sample.median, None, "", 0.005)


def large(bench):
    """Nothing to do among 100,000 stages, beside nothing to do among 10,000."""
    stages, smaller = 100_000, bench.known.get("nothing to do, 10000, axis")
    folder = bench.folder("large")
    work = Pipeline(stages)
    work.sources(folder)
    work.axis(folder)
    seconds, _ = once(bench.run(), folder)
    sample = alternate({"axis": Contender(bench.run(), folder)}, 3)["axis"]
    note = f"cold {seconds:.0f} s"
    what = f"nothing to do, {stages:,} stages, axis"
    if smaller:
        yield Result(what, sample.median, smaller, "10,000 stages", 12, note=note)
    yield Result(f"peak memory, {what}", sample.memory / 1e6, None, "", None, unit="MB")
    shutil.rmtree(folder)


def ops(bench):
    """The built-in operations beside NumPy, which reads the same files and computes the same numbers, each on one thread: an
    operation uses one, because members run side by side."""
    if bench.numpy is None:
        bench.left.append("numeric operations (no `--numpy PYTHON`)")
        return
    folder = bench.folder("ops")
    script = Path(__file__).with_name("numeric.py")
    rows, columns = (4_000, 512) if max(bench.sizes) >= 1_000 else (400, 32)
    once([bench.numpy, script, "make", str(rows), str(columns)], folder)
    for name, words in (("similarity", "linear CKA"), ("permutation-null", "permutation null, 199 draws")):
        with_ = {"metric": "linear-cka", "pairs": "single"}
        if name == "permutation-null":
            with_ |= {"permutations": 199, "alpha": 0.05, "seed": 1}
        call = {"with": with_, "inputs": {"x": "x.safetensors", "y": "y.safetensors"}, "outputs": {}}
        call = json.dumps(call | {"measurements": "measurements.json"})
        samples = alternate(
            {
                "NumPy": Contender([bench.numpy, script, name], folder),
                "NumPy alone": Contender([bench.numpy, "-c", "import numpy"], folder),
                "avow": Contender([bench.avow, "op", f"representation/{name}", "--call", call], folder),
            },
            min(bench.rounds, 3),
        )
        anchor = samples["NumPy"].median - samples["NumPy alone"].median
        what = f"{words}, {rows:,} × {columns}, whole `avow op`"
        yield Result(what, samples["avow"].median, anchor, "NumPy without its start", 1.2)


def dispatch(bench):
    """Actions that do nothing, through a worker on this machine."""
    if bench.dispatch is None:
        bench.left.append("dispatch (no `--dispatch PROGRAM`)")
        return
    folder = bench.folder("dispatch")
    import subprocess

    text = subprocess.run([bench.dispatch, "2000", "4"], cwd=folder, capture_output=True, text=True, check=True).stdout
    rates = [float(line.split("worker ")[1].split()[0]) for line in text.splitlines() if "worker " in line]
    best = max(rates)
    note = f"{best:.0f} actions/s"
    yield Result("1,000 no-op actions through a local worker", 1000 / best, None, "", 1.0, note=note)


ROWS = {
    "start": start,
    "pipeline": pipeline,
    "sweep": sweep,
    "cells": cells,
    "paper": paper,
    "big": big,
    "many": many,
    "ops": ops,
    "dispatch": dispatch,
    "large": large,
}
