"""Makes the made-up measurements of the plans in this folder, and says what each should come to.

The numbers are simple on purpose, so that every verdict can be checked by hand or with SciPy; run `python3 plans.py`
to write the tables anew.
"""
import csv
import itertools


def write(name, header, rows):
    with open(f"{name}.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)


# Deviations of ten seeds with mean 0 and standard deviation 1.054.
Z = [-1.6, -1.1, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.1, 1.6]

write("seeds", ["seed", "accuracy"], zip(range(5), [0.71, 0.69, 0.74, 0.48, 0.66]))
write(
    "nested",
    ["dataset", "seed", "accuracy"],
    [
        (dataset, seed, 0.7 if seed < wins else 0.4)
        for dataset, wins in [("digits", 5), ("letters", 4), ("words", 2)]
        for seed in range(5)
    ],
)
write(
    "conjunction",
    ["arm", "seed", "accuracy", "seconds"],
    [
        (arm, seed, round(0.8 + gain + 0.005 * Z[seed], 4), round(10 + slow + 0.02 * Z[9 - seed], 4))
        for arm, gain, slow in [("new", 0.02, 0.01), ("old", 0.0, 0.0)]
        for seed in range(10)
    ],
)
# The pairs must differ in something: the old arm's noise is another order of the same deviations.
write(
    "interaction",
    ["method", "shift", "seed", "accuracy"],
    [
        (method, shift, seed, round(base + 0.004 * Z[(seed * step + 3) % 10], 4))
        for (method, shift, base, step) in [
            ("new", "yes", 0.70, 1),
            ("old", "yes", 0.62, 3),
            ("new", "no", 0.90, 7),
            ("old", "no", 0.89, 9),
        ]
        for seed in range(10)
    ],
)
write(
    "inferiority",
    ["arm", "seed", "accuracy"],
    [
        (arm, seed, round(0.9 - loss + 0.003 * Z[(seed * step) % 10], 4))
        for arm, loss, step in [("small", 0.002, 3), ("full", 0.0, 1)]
        for seed in range(10)
    ],
)
write(
    "sources",
    ["source", "item", "accuracy"],
    [
        (source, item, round(mean + 0.02 * Z[item], 4))
        for source, mean in [("news", 0.85), ("web", 0.80), ("forum", 0.60)]
        for item in range(10)
    ],
)
write(
    "grid",
    ["rate", "decay", "seed", "gain"],
    [
        # Every seed has one cell that went wrong and one that went very well; the median cell is near 0.03.
        (rate, decay, seed, round(gain + 0.004 * Z[seed], 4))
        for seed in range(10)
        for (rate, decay), gain in zip(
            itertools.product([0.1, 0.01, 0.001], [0, 0.1, 0.5]),
            [-5.0, 0.01, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 9.0],
        )
    ],
)
# Forty items: 18 that both call 1, 16 that both call 0, three and three on which they differ: κ = 0.6992.
labels = [(1, 1)] * 18 + [(0, 0)] * 16 + [(1, 0)] * 3 + [(0, 1)] * 3
write(
    "raters",
    ["rater", "item", "label"],
    [(rater, item, pair[i]) for item, pair in enumerate(labels) for i, rater in enumerate(["ann", "bob"])],
)
write("scores", ["item", "score"], [(item, round(0.62 + 0.05 * Z[item % 10], 4)) for item in range(40)])
write(
    "sequence",
    ["dose", "seed", "effect"],
    [
        (dose, seed, round(effect + 0.05 * Z[(seed * step) % 10], 4))
        for dose, effect, step in [("high", 0.2, 1), ("middle", 0.02, 3), ("low", 0.3, 7)]
        for seed in range(10)
    ],
)
# Two hundred nulls, five of which were rejected at 5 %.
write("nulls", ["repetition", "p"], [(i, 0.01 if i < 5 else round(0.06 + 0.0047 * (i - 5), 4)) for i in range(200)])
write(
    "depth",
    ["depth", "seed", "probe"],
    [
        (depth, seed, round(0.5 + 0.05 * level + 0.03 * Z[(seed * (level + 1)) % 10], 4))
        for level, depth in enumerate([1, 2, 4, 8])
        for seed in range(10)
    ],
)
