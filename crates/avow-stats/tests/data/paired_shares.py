"""Writes paired_shares.json: the interval of Newcombe (Statistics in Medicine 17, 1998, pp. 2635-2650, method 10) for a
difference of paired shares, by hand from the published formula in decimal arithmetic of 50 digits.

    python3 crates/avow-stats/tests/data/paired_shares.py > crates/avow-stats/tests/data/paired_shares.json

Nothing but the standard library is needed. `a` pairs succeeded in both arms, `b` only in the first, `c` only in the
second, `d` in neither. Limits of each share are Wilson's; they are squared and added under the correlation phi of the
table, whose numerator is corrected for continuity where it is positive.
"""

import json
import random
from decimal import Decimal, getcontext

getcontext().prec = 50
# The standard normal quantile at 0.975 and 0.95, to more digits than are compared.
QUANTILES = {"0.05": Decimal("1.95996398454005423552459443052"), "0.1": Decimal("1.64485362695147271486384933720")}


def wilson(hits, trials, z):
    p, n = Decimal(hits) / trials, Decimal(trials)
    half = z * (z * z + 4 * n * p * (1 - p)).sqrt()
    low = Decimal(0) if hits == 0 else (2 * n * p + z * z - half) / (2 * (n + z * z))
    high = Decimal(1) if hits == trials else (2 * n * p + z * z + half) / (2 * (n + z * z))
    return p, low, high


def phi(a, b, c, d):
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return Decimal(0)
    numerator, n = Decimal(a * d - b * c), a + b + c + d
    if numerator > 0:
        numerator = max(numerator - Decimal(n) / 2, Decimal(0))
    return numerator / Decimal(margins).sqrt()


def interval(a, b, c, d, z):
    n = a + b + c + d
    (p, l1, u1), (q, l2, u2), f = wilson(a + b, n, z), wilson(a + c, n, z), phi(a, b, c, d)
    add = lambda x, y: (x * x - 2 * f * x * y + y * y).sqrt()
    return p - q - add(p - l1, u2 - q), p - q + add(u1 - p, q - l2)


def case(counts, error):
    low, high = interval(*counts, QUANTILES[error])
    return {"counts": list(counts), "error": error, "want": [float(low), float(high)]}


def main():
    chosen = random.Random(1998)
    tables = [(1, 1, 7, 12), (36, 12, 2, 0), (20, 6, 1, 13), (0, 10, 0, 0), (10, 0, 0, 10), (5, 0, 0, 0), (0, 7, 7, 0)]
    while len(tables) < 40:
        tables.append(tuple(chosen.choice([0, 1, 2, 3, 5, 8, 13, 40, 200]) for _ in range(4)))
    cases = [case(t, e) for t in tables if sum(t) >= 2 for e in QUANTILES]
    rows = ",\n".join("  " + json.dumps(c) for c in cases)
    print('{"cases": [\n' + rows + "\n]}")


main()
