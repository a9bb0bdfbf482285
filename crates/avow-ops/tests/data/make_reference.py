"""Writes reference.json beside this script: small inputs with the right outputs, for the tests of avow-ops.

Needs NumPy, SciPy and blake3 (`pip install numpy scipy blake3`). Run it in this folder: `python make_reference.py`. Everything
is float64; nothing is drawn at random but by the ChaCha20 streams that are themselves under test, written here a second time
from RFC 8439. Where a quantity has two formulas the script computes both and stops if they differ.
"""

import json
import math
import struct
from fractions import Fraction
from pathlib import Path

import blake3
import numpy as np
from scipy.stats import norm

SIX_X = np.array([[1, 2, 0], [0, 1, -1], [2, 0, 1], [-1, 3, 2], [1, -2, 0.5], [3, 1, -2]], float)
SIX_Y = np.array([[2, 1], [1, 0], [0, 2], [4, -1], [-2, 1.5], [0.5, 3]], float)
FOUR_X = SIX_X[:4]
FOUR_Y = np.array([[2, 1, 0], [1, 0, 1], [0, 2, -1], [4, -1, 3]], float)
ORDERS = [
    [1, 0, 3, 2, 5, 4], [5, 4, 3, 2, 1, 0], [2, 3, 4, 5, 0, 1],
    [0, 2, 1, 4, 3, 5], [3, 5, 0, 1, 4, 2], [4, 0, 5, 1, 2, 3],
    [1, 2, 0, 5, 3, 4], [5, 0, 1, 3, 4, 2], [2, 4, 1, 0, 5, 3],
]
WEIGHTS = np.array([[1, -0.5, 0, 2], [0.5, 1, -1, 0], [0, 0.25, 1.5, -1]], float)
INPUTS = np.array([[1, 0, 2, 0.5], [0, 1, 1, 0], [2, 1, 0, 0], [0.5, 0, 1, 3], [1, 2, 0, 1]], float)
GRADIENTS = np.array(
    [[0.1, -0.2, 0.1], [-0.3, 0.1, 0.2], [0.05, 0.2, -0.25], [0.4, -0.1, -0.3], [-0.2, 0.3, -0.1]], float
)
NEURONS = [2, 0, 3, 1]


def agreed(first, second, tolerance=1e-12):
    if abs(first - second) > tolerance * max(1, abs(first)):
        raise SystemExit(f"two formulas differ: {first} and {second}")
    return float(first)


def cka(x, y):
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    cross = np.sum((x.T @ y) ** 2) / math.sqrt(np.sum((x.T @ x) ** 2) * np.sum((y.T @ y) ** 2))
    k, l = x @ x.T, y @ y.T
    return agreed(cross, np.trace(k @ l) / math.sqrt(np.trace(k @ k) * np.trace(l @ l)))


def rank_of(alpha, count):
    exact = (1 - Fraction(alpha)) * (count + 1)
    return -(-exact.numerator // exact.denominator)


def calibrated(score, null, alpha):
    rank = rank_of(alpha, len(null))
    threshold = sorted(null + [score])[rank - 1]
    share = (score - threshold) / max(1 - threshold, 1e-12)
    return {
        "alpha": float(alpha),
        "rank": rank,
        "p": (1 + len([v for v in null if v >= score])) / (len(null) + 1),
        "threshold": threshold,
        "null_mean": math.fsum(null) / len(null),
        "calibrated": min(max(share, 0.0), 1.0),
    }


def row_null(xs, ys, levels):
    def largest(order):
        return max(cka(x, y[order]) for x in xs for y in ys)

    score, null = largest(range(6)), [largest(order) for order in ORDERS]
    return {
        "x": [x.tolist() for x in xs],
        "y": [y.tolist() for y in ys],
        "score": score,
        "null": null,
        "levels": [calibrated(score, null, alpha) for alpha in levels],
    }


def spread_null():
    null = [(37 * i % 199) / 400 for i in range(1, 200)]
    return {"score": 0.52, "null": null, "levels": [calibrated(0.52, null, "0.05")]}


def raw(samples):
    return samples.T @ samples / len(samples)


def normalised(samples):
    rows = []
    for row in samples:
        length = np.linalg.norm(row)
        rows.append(row / length if length > 0 else row)
    rows = np.array(rows)
    return agreed_matrix(raw(rows - rows.mean(axis=0)), np.cov(rows.T, bias=True))


def agreed_matrix(first, second):
    if not np.allclose(first, second, atol=1e-14):
        raise SystemExit("two matrix formulas differ")
    return first


def correlation(a, b):
    a, b = a.reshape(-1), b.reshape(-1)
    da, db = a - a.mean(), b - b.mean()
    return agreed(da @ db / math.sqrt((da @ da) * (db @ db)), np.corrcoef(a, b)[0, 1])


def angle(a, b):
    return float(np.sum(a * b) / math.sqrt(np.sum(a * a) * np.sum(b * b)))


def alignments():
    outputs, back = INPUTS @ WEIGHTS.T, GRADIENTS @ WEIGHTS
    z = {"a": WEIGHTS.T @ WEIGHTS, "b": WEIGHTS @ WEIGHTS.T}
    found = {}
    for form, moment in (("second-moment", raw), ("normalised-covariance", normalised)):
        h = {"a": moment(INPUTS), "b": moment(outputs)}
        g = {"a": moment(back), "b": moment(GRADIENTS)}
        relations = {}
        for side in "ab":
            for name, left, right in (("h{0}-g{0}", h, g), ("h{0}-z{0}", h, z), ("g{0}-z{0}", g, z)):
                relations[name.format(side)] = {
                    "pearson": correlation(left[side], right[side]),
                    "cosine": angle(left[side], right[side]),
                }
        found[form] = relations
    permuted = z["a"][NEURONS][:, NEURONS]
    return {
        "w": WEIGHTS.tolist(), "h_a": INPUTS.tolist(), "h_b": outputs.tolist(),
        "g_a": back.tolist(), "g_b": GRADIENTS.tolist(), "forms": found,
        "permuted": {"order": NEURONS, "second-moment ha-za pearson": correlation(raw(INPUTS), permuted)},
    }


def spectrum(matrix):
    s = np.linalg.svd(matrix, compute_uv=False)
    s[s <= max(matrix.shape) * np.finfo(float).eps * s[0]] = 0.0

    def entropy_rank(weights):
        shares = weights[weights > 0] / weights.sum()
        return float(np.exp(-np.sum(shares * np.log(shares))))

    energy = s**2
    return {
        "matrix": matrix.tolist(),
        "singular_values": s.tolist(),
        "rank": int(np.count_nonzero(s)),
        "rank_at_0.2": int(np.count_nonzero(s > 0.2 * s[0])),
        "participation": float(energy.sum() ** 2 / np.sum(energy**2)),
        "effective_rank": entropy_rank(s),
        "effective_rank_of_energy": entropy_rank(energy),
        "stable_rank": float(energy.sum() / energy[0]),
    }


# ---- the ChaCha20 streams, from RFC 8439 with a 64-bit counter and a 64-bit stream number -----------------------------------
def block(key, counter, stream):
    mask = 0xFFFFFFFF
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key),
             counter & mask, counter >> 32, stream & mask, stream >> 32]
    v = list(start)

    def turn(a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            v[x] = (v[x] + v[y]) & mask
            v[z] ^= v[x]
            v[z] = ((v[z] << bits) | (v[z] >> (32 - bits))) & mask

    for _ in range(10):
        for i in range(4):
            turn(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            turn(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((a + b) & mask for a, b in zip(v, start)))


def words(domain, seed, stream):
    key = blake3.blake3(b"avow-ops/random/1\0" + domain.encode() + b"\0" + struct.pack("<I", seed)).digest()
    counter = 0
    while True:
        yield from struct.unpack("<8Q", block(key, counter, stream))
        counter += 1


def below(source, bound):
    while True:
        product = next(source) * bound
        if product % 2**64 >= (2**64 - bound) % bound:
            return product >> 64


def permutation(source, count):
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        chosen = below(source, last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order


def draws():
    cases = []
    for domain, seed, stream in (("test", 0, 0), ("test", 2147483647, 5), ("synthetic/gaussian x", 7, 1)):
        source = words(domain, seed, stream)
        normals = [float(norm.ppf(((next(source) >> 11) + 0.5) / 2**53)) for _ in range(20)]
        cases.append({"domain": domain, "seed": seed, "stream": stream,
                      "permutation": permutation(words(domain, seed, stream), 12), "normals": normals})
    return cases


def main():
    levels = ["0.05", "0.2", "0.5"]
    layers_x = [SIX_X, SIX_X[:, :2] ** 2, np.abs(SIX_X)]
    layers_y = [SIX_Y, np.maximum(SIX_Y, 0)]
    thin = np.outer([1, 2, 3, 4], [1, 0, 1]) + np.outer([1, 0, 0, -1], [0, 2, 1.0])
    values = {
        "linear_cka": [{"x": x.tolist(), "y": y.tolist(), "value": cka(x, y)}
                       for x, y in ((SIX_X, SIX_Y), (FOUR_X, FOUR_Y))],
        "orders": ORDERS,
        "single": row_null([SIX_X], [SIX_Y], levels),
        "max": row_null(layers_x, layers_y, levels[1:]),
        "spread": spread_null(),
        "order_statistics": [{"alpha": float(a), "count": k, "rank": rank_of(a, k)} for a, k in (
            ("0.05", 199), ("0.05", 99), ("0.42", 49), ("0.1", 9), ("0.05", 9), ("0.05", 18))],
        "alignment": alignments(),
        "spectra": [spectrum(SIX_X.copy()), spectrum(thin)],
        "quantiles": [{"p": p, "x": float(norm.ppf(p))}
                      for p in (1e-300, 1e-20, 1e-9, 0.001, 0.02425, 0.074, 0.076, 0.3, 0.5, 0.7, 0.9, 0.975, 0.999999)],
        "draws": draws(),
    }
    Path(__file__).with_name("reference.json").write_text(json.dumps(values, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
