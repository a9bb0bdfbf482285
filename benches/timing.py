"""Running programs and taking their time, alternately."""

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

#: Processes at once, for every tool that has parallelism.
JOBS = 2


@dataclass
class Sample:
    """What repeated runs of one program took."""

    seconds: list = field(default_factory=list)
    #: The largest resident set of one process in bytes, the program's own or a child's.
    memory: int = 0

    @property
    def median(self):
        return statistics.median(self.seconds)


class Failed(Exception):
    """A program that was measured failed, so its time means nothing."""


def once(command, folder):
    """Runs a program; (seconds, largest resident set in bytes)."""
    environment = {**os.environ, "LC_ALL": "C", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with open(folder / ".bench-output", "wb") as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = (folder / ".bench-output").read_text(errors="replace")[-2000:]
        raise Failed(f"{' '.join(map(str, command))} ended with {process.returncode}\n{tail}")
    return seconds, usage.ru_maxrss * 1024


@dataclass
class Contender:
    """A program, what is done before each of its runs (untimed), and the folder it runs in."""

    command: list
    folder: object
    before: object = None
    #: Instead of a command: a function that does the work itself.
    work: object = None


def alternate(contenders, rounds):
    """Runs all contenders in turn, so many rounds; samples by name. What earlier ones wrote is flushed first, so
    that nobody pays for another's dirty pages."""
    samples = {name: Sample() for name in contenders}
    for turn in range(rounds):
        for name, contender in contenders.items():
            if contender.before:
                contender.before(turn)
            os.sync()
            if contender.work:
                start = time.perf_counter()
                contender.work()
                seconds, memory = time.perf_counter() - start, 0
            else:
                seconds, memory = once(contender.command, contender.folder)
            sample = samples[name]
            sample.seconds.append(seconds)
            sample.memory = max(sample.memory, memory)
            print(f"  {name}: {seconds:.3f} s", file=sys.stderr, flush=True)
    return samples


def spawn_all(commands, folder):
    """The floor: `JOBS` threads that start the commands one after the other and do nothing else."""
    commands = list(commands)
    lock, position = threading.Lock(), iter(range(len(commands)))
    sh = shutil.which("sh")
    errors = []

    def worker():
        while True:
            with lock:
                at = next(position, None)
            if at is None:
                return
            pid = os.posix_spawn(sh, ["sh", "-c", f"cd {folder} && {commands[at]}"], os.environ)
            _, status = os.waitpid(pid, 0)
            if status:
                errors.append(commands[at])

    threads = [threading.Thread(target=worker) for _ in range(JOBS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise Failed(f"{len(errors)} commands failed, the first: {errors[0]}")


def stat_walk(folder):
    """The least that noticing a change can cost: one look at every file."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)
            count += 1
    return count
