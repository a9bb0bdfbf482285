"""The anchor of the numeric operations: the same numbers with NumPy, from the same files.

    numeric.py make ROWS COLUMNS    writes x.safetensors and y.safetensors
    numeric.py similarity           linear CKA (Kornblith et al. 2019) of both
    numeric.py permutation-null     the same for 199 random pairings of the rows
"""

import json
import sys
from pathlib import Path

import numpy as np


def write(path, matrix):
    data = np.ascontiguousarray(matrix, dtype="<f4").tobytes()
    entry = {"dtype": "F32", "shape": list(matrix.shape), "data_offsets": [0, len(data)]}
    head = json.dumps({"layer": entry}).encode()
    Path(path).write_bytes(len(head).to_bytes(8, "little") + head + data)


def read(path):
    raw = Path(path).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + length])["layer"]
    matrix = np.frombuffer(raw[8 + length :], dtype="<f4").reshape(entry["shape"]).astype(np.float64)
    return matrix - matrix.mean(axis=0)


def make(rows, columns):
    random = np.random.default_rng(7)
    x = random.standard_normal((rows, columns))
    write("x.safetensors", x)
    write("y.safetensors", x @ random.standard_normal((columns, columns)) + random.standard_normal((rows, columns)))


def main():
    what = sys.argv[1]
    if what == "make":
        return make(int(sys.argv[2]), int(sys.argv[3]))
    x, y = read("x.safetensors"), read("y.safetensors")
    scale = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    score = np.linalg.norm(y.T @ x) ** 2 / scale
    if what == "permutation-null":
        random = np.random.default_rng(1)
        null = [np.linalg.norm(y[random.permutation(len(y))].T @ x) ** 2 / scale for _ in range(199)]
        print((1 + sum(value >= score for value in null)) / 200)
    print(score)


if __name__ == "__main__":
    main()
