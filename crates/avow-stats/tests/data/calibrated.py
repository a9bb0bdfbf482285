"""Writes calibrated.json: what the published package `calibrated-similarity` 0.1.1 says of given scores.

    pip install --no-deps calibrated-similarity==0.1.1 numpy
    python calibrated.py > calibrated.json

The package's own code runs here. It asks PyTorch for a dozen array functions in 32-bit floats, which `Torch` below
gives it from NumPy, so that nothing of two gigabytes has to be installed. The similarity it is handed returns the next
of the given scores, so observed and null scores are known. Scores are multiples of 2⁻¹⁰, which 32 bits hold exactly.
"""

import json
import sys
import types
from fractions import Fraction

import numpy as np


class Tensor(np.ndarray):
    """As much of a tensor as the package asks for."""

    device = "cpu"

    def dim(self):
        return self.ndim

    def view(self, *shape):
        return self.reshape(shape) if shape and isinstance(shape[0], int) else np.ndarray.view(self, *shape)

    def to(self, dtype):
        return self.astype(dtype)

    def clamp_min(self, least):
        return tensor(np.maximum(self, np.float32(least)))


def tensor(value, dtype=None, device=None):
    return np.asarray(value, dtype=dtype).view(Tensor)


def no_grad():
    return lambda function: function


torch = types.ModuleType("torch")
torch.Tensor, torch.Generator, torch.device, torch.float32 = Tensor, object, str, np.float32
torch.no_grad = no_grad
torch.tensor = torch.as_tensor = tensor
torch.empty = lambda shape, dtype=None, device=None: np.empty(shape, dtype).view(Tensor)
torch.cat = lambda parts, dim=0: np.concatenate(parts, axis=dim).view(Tensor)
torch.sort = lambda values: (np.sort(values).view(Tensor), None)
torch.relu = lambda values: tensor(np.maximum(values, np.float32(0)))
torch.clamp = lambda values, min, max: tensor(np.clip(values, np.float32(min), np.float32(max)))
torch.randperm = lambda n, device=None, generator=None: np.arange(n)
sys.modules["torch"] = torch

from calibrated_similarity import calibrate  # noqa: E402


def ask(observed, nulls, alpha, ceiling):
    scores = iter([observed, *nulls])
    rows = tensor(np.zeros((3, 2)))
    answer = calibrate(rows, rows, lambda x, y: next(scores), K=len(nulls), alpha=alpha, smax=ceiling)
    return [float(part) for part in answer]


def main():
    draws = np.random.default_rng(20260214)
    cases = []
    while len(cases) < 36:
        count = int(draws.choice([19, 39, 99, 199, 200, 400]))
        alpha = str(draws.choice(["0.05", "0.1", "0.2"]))
        # The rank is computed in floating point there; a case in which that is not the exact one says nothing here.
        exact = -((Fraction(alpha) - 1) * (count + 1) // 1)
        if exact != int(np.ceil((1.0 - float(alpha)) * (count + 1))):
            continue
        nulls = [int(v) / 1024 for v in draws.integers(0, 400, count)]
        top = sorted(nulls)[-1 - len(cases) % 5]
        observed = [int(draws.integers(0, 1000)) / 1024, top, top + 1 / 1024][len(cases) % 3]
        ceiling = [1.0, None, 0.75][len(cases) % 3 if len(cases) % 2 else 0]
        score, p, threshold = ask(observed, nulls, float(alpha), ceiling)
        cases.append({"observed": observed, "nulls": nulls, "alpha": alpha, "ceiling": ceiling, "score": score, "p": p,
                      "threshold": threshold})
    json.dump({"package": "calibrated-similarity 0.1.1", "cases": cases}, sys.stdout)
    print()


main()
