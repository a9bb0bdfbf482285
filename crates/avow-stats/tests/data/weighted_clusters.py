"""Writes weighted_clusters.json: the sign-flip test of a mean of all units whose clusters flip whole, by enumeration of every
flip in exact arithmetic.

    python3 crates/avow-stats/tests/data/weighted_clusters.py > crates/avow-stats/tests/data/weighted_clusters.json

Nothing but the standard library is needed. Each case has the means and sizes of the clusters, a bound, the p-values of
"at most the bound" and "at least the bound", and the 95 % interval: the bounds that neither rejects at 2.5 %, found by
bisection between the weighted means of subsets, at which p changes.
"""

import itertools
import json
import random
from fractions import Fraction


def tails(means, sizes, bound):
    deviations = [n * (m - bound) for m, n in zip(means, sizes)]
    seen, above, below = sum(deviations), 0, 0
    flips = list(itertools.product((1, -1), repeat=len(means)))
    for signs in flips:
        flipped = sum(s * d for s, d in zip(signs, deviations))
        above += flipped >= seen
        below += flipped <= seen
    return Fraction(above, len(flips)), Fraction(below, len(flips))


def interval(means, sizes):
    places = set()
    for chosen in itertools.product((0, 1), repeat=len(means)):
        weight = sum(n for n, c in zip(sizes, chosen) if c)
        if weight:
            places.add(sum(m * n for m, n, c in zip(means, sizes, chosen) if c) / weight)
    places = sorted(places)
    level = Fraction(25, 1000)
    # Between two neighbouring places p is constant; an end is the first place beyond which nothing rejects.
    gaps = [(a + b) / 2 for a, b in zip(places, places[1:])]
    kept = [i for i, gap in enumerate(gaps) if min(tails(means, sizes, gap)) > level]
    outside = min(tails(means, sizes, places[0] - 1)) > level
    return None if outside else [float(places[kept[0]]), float(places[kept[-1] + 1])]


def case(chosen, count):
    means = [Fraction(chosen.randint(-40, 60), 64) for _ in range(count)]
    sizes = [chosen.randint(1, 9) for _ in range(count)]
    bound = Fraction(chosen.randint(-10, 10), 64)
    above, below = tails(means, sizes, bound)
    total = float(sum(m * n for m, n in zip(means, sizes)) / sum(sizes))
    return {"means": [float(m) for m in means], "sizes": sizes, "bound": float(bound), "estimate": total,
            "p": [float(above), float(below)], "interval": interval(means, sizes)}


def main():
    chosen = random.Random(6)
    rows = ",\n".join("  " + json.dumps(case(chosen, count)) for count in (2, 4, 5, 6, 6, 7, 7, 8, 8))
    print('{"cases": [\n' + rows + "\n]}")


main()
