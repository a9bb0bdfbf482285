"""Writes reference.json beside this file: manifests with what the published package `falsify` says of each.

    python3 -m venv v && v/bin/pip install falsify==0.4.0 && v/bin/python reference.py

Each case is a file (name and text), whether the package accepts it, the canonical text and digest it gives, and the exit
codes of its `verify` for some observed values, of `lock`, and of `verify` against another digest and without a sidecar.
"""

import contextlib
import io
import json
import os
import random
import tempfile

import falsify_prml as falsify

BASE = {
    "version": "prml/0.1",
    "claim_id": "01900000-0000-7000-8000-000000000000",
    "created_at": "2026-05-01T12:00:00Z",
    "metric": "accuracy",
    "comparator": ">=",
    "threshold": 0.85,
    "dataset": {"id": "imagenet-val", "hash": "ab" * 32},
    "seed": 42,
    "producer": {"id": "example.org"},
}


def changed(**changes):
    manifest = json.loads(json.dumps(BASE))
    for path, value in changes.items():
        at = manifest
        *way, last = path.split("__")
        for step in way:
            at = at.setdefault(step, {})
        if value is ...:
            at.pop(last, None)
        else:
            at[last] = value
    return manifest


def manifests():
    yield changed()
    for comparator in [">=", "<=", ">", "<", "=="]:
        yield changed(comparator=comparator, version="prml/0.2")
    numbers = [0, 1, -1, 0.0, -0.0, 1.0, 0.1, 1e-4, 1e-5, 1.5e-7, 123456789.123, 1e15, 1e16, 1.25e17, 2**53 - 1, 2**53,
               2**53 + 2, float(2**53), 5e-324, 1.7976931348623157e308, 100.0, 0.30000000000000004]
    for number in numbers:
        for version in ["prml/0.1", "prml/0.2"]:
            yield changed(threshold=number, version=version)
    words = ["yes", "No", "on", "OFF", "true", "null", "~", "1", "-1", "+1", "012", "0x1F", "0b101", "1_000", "1.5", ".5", "1e5",
             "1.0e+5", "1:30", "1:30.5", ".inf", "-.INF", ".nan", "2026-01-01", "2026-01-01T00:00:00Z", "2026-1-1 1:02:03",
             "=", "<<", "- a", "-a", "-", "? a", "?a", ": a", ":a", "a: b", "a:b", "a:", "a #b", "a#b", "#a", "'a'", "\"a\"",
             "it's", "a, b", "[a]", "a]", "{a}", "a}", "&a", "*a", "!a", "|a", ">a", "%a", "@a", "`a", "a`", "---", "--- a", "...",
             "....", "--", " a", "a ", "a  b", "é", "模型", "a\u00a0b", "\U0001f600", "y", "n", "a\\b", "a\"b", "\ufffe",
             "a\ufffeb\U0001f600", "\U0010ffff", "0", "00", "0o17", "08", "1.", "1e-3", "1.5e-3", "Infinity", "none", "0.1.2",
             "12:30:45", "a\u3000", "\u3000a", "~a", "x" * 256]
    for word in words:
        yield changed(metric=word)
        yield changed(notes=word, dataset__uri=word)
    yield changed(notes="")
    yield changed(notes="word " * 800)
    yield changed(seed=None)
    yield changed(seed=2**63 - 1)
    yield changed(prior_hash="cd" * 32)
    yield changed(prior_hash=None)
    yield changed(metric_args={"tolerance": 0.01}, comparator="==")
    yield changed(metric_args={})
    yield changed(metric_args={"k": [], "deep": {"a": {"b": [1, [2, [3]], {"c": "d", "e": [{}]}]}}, "list": [{"x": 1, "y": [2]}, "z", None, True]})
    yield changed(model={"id": "gpt", "weights": {"hash": "00" * 32}})
    yield changed(compute_envelope={"gpu": "1", "hours": 2.5, "on": "a: b", "list": [[], {}, ["- x"]]})
    # Not manifests.
    for field in ["version", "claim_id", "metric", "threshold", "dataset", "seed", "producer", "dataset__id", "dataset__hash", "producer__id"]:
        yield changed(**{field: ...})
    for path, value in [("version", "prml/0.3"), ("claim_id", "00000000-0000-4000-8000-000000000000"), ("created_at", "yesterday"),
                        ("metric", ""), ("metric", "x" * 257), ("comparator", "=>"), ("threshold", True), ("threshold", "0.5"),
                        ("dataset__hash", "AB" * 32), ("dataset__hash", "ab"), ("dataset__extra", 1), ("producer__extra", 1), ("extra", 1),
                        ("seed", 1.5), ("seed", "1"), ("seed", True), ("prior_hash", "xyz"), ("notes", "x" * 4097), ("metric", "a\nb"),
                        ("metric", "e\u0301"), ("metric", "a\u2028b"), ("metric", "\ufeffa"), ("notes", "\u0085")]:
        yield changed(**{path: value})
    draw = random.Random(20261130)
    alphabet = "ab1 :-#'\"\\,[]{}?!&*.~=<>|%@`é_+0"
    for _ in range(200):
        text = "".join(draw.choice(alphabet) for _ in range(draw.randint(1, 12)))
        yield changed(metric=text, threshold=draw.choice([draw.uniform(-1e3, 1e3), draw.uniform(-1, 1) * 10.0 ** draw.randint(-20, 20)]),
                      version=draw.choice(["prml/0.1", "prml/0.2"]), metric_args={text: [text, {text: text}]})


def yaml_files():
    text = falsify.canonicalize(BASE)
    yield text
    yield "# a comment\n" + text.replace("accuracy", "'accuracy'").replace("seed: 42", "seed: null")
    yield text.replace("metric: accuracy", "metric: yes")
    yield text + "metric: other\n"
    yield text.replace("threshold: 0.85", "threshold: 1")
    yield text.replace("threshold: 0.85", "threshold: .nan")
    yield "[1, 2]\n"
    yield "a: [\n"


def silent(arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return falsify.main(arguments)
        except SystemExit as end:
            return end.code


def case(name, text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        out = {"name": name, "text": text, "unlocked": silent(["verify", path]), "lock": silent(["lock", path])}
        if out["lock"] == 0:
            manifest = falsify.load_manifest(path)
            out["canonical"] = falsify.canonicalize(manifest)
            out["sha256"] = falsify.manifest_hash(manifest)
            threshold = manifest["threshold"]
            observed = [threshold, threshold - 1e-3, threshold + 1e-3, threshold + 1e-12]
            out["observed"] = [[repr(float(x)), silent(["verify", path, "--observed=" + repr(float(x))])] for x in observed]
            out["other"] = silent(["verify", path, "--expected-hash", "0" * 64])
        return out


cases = [case("m.json", json.dumps(m)) for m in manifests()] + [case("m.yaml", text) for text in yaml_files()]
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.json")
with open(here, "w", encoding="utf-8") as file:
    json.dump({"package": "falsify " + falsify.__version__, "cases": cases}, file, indent=1, ensure_ascii=True)
    file.write("\n")
print(len(cases), "cases,", sum("sha256" in c for c in cases), "of them manifests")
