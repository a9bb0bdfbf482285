"""Writes reference.json: the numbers that avow-stats must reproduce, from SciPy, statsmodels and mpmath.

    python reference.py > reference.json

`tabulated` holds the ten-digit values of the project's definition of its statistics; the script stops if what it
computes differs from them, so that the file, the definition and the crate state one set of numbers.
Needs numpy, scipy, statsmodels and mpmath.
"""

import itertools
import json
import math
import sys

import mpmath
import numpy as np
import scipy
import statsmodels
from scipy import optimize, stats
from statsmodels.stats import multitest, power, weightstats

X = np.array([0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910])
Y = np.array([0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904])
D = X - Y
VALUES = {}


def put(name, computed, tabulated=None):
    """Records `computed` after comparing it with the ten digits of the definition."""
    flat = [float(v) for v in np.ravel(computed)]
    if tabulated is not None:
        expected = [float(v) for v in np.ravel(tabulated)]
        assert len(flat) == len(expected), (name, flat, expected)
        for have, want in zip(flat, expected):
            assert abs(have - want) <= 5e-10 * abs(want) + 1e-15, (name, have, want)
    VALUES[name] = flat


def t_interval(values, level=0.95):
    return stats.ttest_1samp(values, 0).confidence_interval(level)


def subset_means(values):
    """Means of all nonempty subsets, by listing them."""
    found = []
    for size in range(1, len(values) + 1):
        found += [np.mean(s) for s in itertools.combinations(values, size)]
    return np.sort(found)


def threshold():
    put("d: mean, sd", [D.mean(), D.std(ddof=1)], [0.007125, 0.005566160513])
    paired = stats.ttest_rel(X, Y)
    put("d: t", paired.statistic, 3.620546554)
    put("d: t two-sided p, greater p, greater p at .005",
        [paired.pvalue, stats.ttest_1samp(D, 0, alternative="greater").pvalue,
         stats.ttest_1samp(D, 0.005, alternative="greater").pvalue],
        [0.008504013693, 0.004252006846, 0.1580100371])
    put("d: t less p", stats.ttest_1samp(D, 0, alternative="less").pvalue)
    put("d: t 95 %", t_interval(D), [0.002471573358, 0.01177842664])
    put("d: t 90 %", t_interval(D, 0.9), [0.003396592601, 0.0108534074])
    put("d: t 98.75 %", t_interval(D, 1 - 0.05 / 4), [0.0005613566128, 0.01368864339])
    three = [0.91, 0.93, 0.92]
    put("three: t 95 %", t_interval(three), [0.8951586229, 0.9448413771])
    put("three: p at .9", stats.ttest_1samp(three, 0.9).pvalue, 0.07417990023)
    ordered = np.sort(D)
    put("d: median interval, k = 1", [ordered[0], ordered[-1]], [-0.001, 0.013])
    put("d: median p at .005, two-sided", stats.binomtest(int((D > 0.005).sum()), 8).pvalue, 0.7265625)
    put("every: lower end at n = 3, 5, 8, 10, 20", [0.025 ** (1 / n) for n in (3, 5, 8, 10, 20)],
        [0.2924017738, 0.4781762499, 0.6305833524, 0.6915028922, 0.831566529])


def difference():
    means = subset_means(D)
    at_most = (1 + (means <= 1e-15).sum()) / 256
    k = int(0.05 * 256 / 2)
    put("d: sign-flip p_S, q", [at_most, 2 * at_most], [0.0078125, 0.015625])
    put("d: sign-flip 95 %", [means[k - 1], means[-k]], [0.002, 0.012])
    put("sign-flip: smallest q at n = 3 to 10", [2.0 ** (1 - n) for n in range(3, 11)],
        [0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625, 0.001953125])
    welch = stats.ttest_ind(X, Y, equal_var=False)
    put("welch: t, two-sided p", [welch.statistic, welch.pvalue], [2.495847002, 0.02942034774])
    put("welch: df", welch.df, 11.17667386)
    put("welch: 95 %", welch.confidence_interval(0.95), [0.0008538511994, 0.0133961488])
    shifted = stats.ttest_ind(X - 0.002, Y, equal_var=False, alternative="greater")
    put("welch: p_S above .002", shifted.pvalue, 0.04983560587)
    low, high = (v[1] for v in weightstats.DescrStatsW(D).ttost_mean(-0.012, 0.012)[1:])
    put("tost: p_S at .012, other side", [high, low], [0.02119128795, 1.291026861e-05])
    clusters = D.reshape(4, 2).mean(1)
    put("clusters: means", clusters, [0.0065, 0.007, 0.0055, 0.0095])
    put("clusters: t p, 95 %", [stats.ttest_1samp(clusters, 0).pvalue, *t_interval(clusters)],
        [0.003571312989, 0.004417191977, 0.009832808023])
    put("clusters: sign-flip q", 2 * (1 + (subset_means(clusters) <= 1e-15).sum()) / 16, 0.125)


def proportion():
    for k, n, tabulated in ((8, 10, [0.4439045377, 0.9747892737]), (10, 10, [0.6915028922, 1]),
                            (0, 5, [0, 0.5218237501])):
        put(f"share {k}/{n}: 95 %", stats.binomtest(k, n).proportion_ci(0.95, "exact"), tabulated)
    greater = stats.binomtest(8, 10, 0.5, "greater").pvalue
    put("share 8/10: p at .5, doubled", [greater, 2 * greater], [0.0546875, 0.109375])
    put("share 3/17: p at .4 greater, less",
        [stats.binomtest(3, 17, 0.4, a).pvalue for a in ("greater", "less")])


def jackknife(rows):
    levels = list(range(1, rows.shape[1] + 1))
    n = len(rows)

    def z(part):
        return math.atanh(stats.spearmanr(np.tile(levels, len(part)), part.ravel()).statistic)

    left = np.array([z(np.delete(rows, i, 0)) for i in range(n)])
    return z(rows), math.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())


def trend():
    rows = np.array([[1, 2, 3, 4], [1.2, 1.9, 3.5, 3.1], [0.7, 2.2, 2.1, 4]])
    pooled = stats.spearmanr(np.tile([1, 2, 3, 4], 3), rows.ravel()).statistic
    put("trend: pooled rho", pooled, 0.9300694811)
    put("trend: ceiling for many units, k = 4", math.sqrt(1 - 1 / 16), 0.9682458366)
    more = np.array([[1, 2, 3, 4], [1.2, 1.9, 3.5, 3.1], [0.7, 2.2, 2.1, 4], [2.0, 1.5, 2.8, 2.6],
                     [0.4, 1.1, 3.9, 3.0], [1.7, 1.3, 2.3, 3.6]])
    put("trend: rows of six units", more)
    z, error = jackknife(more)
    reach = stats.t.ppf(0.975, 5) * error
    put("trend: jackknife rho, 95 %", np.tanh([z, z - reach, z + reach]))
    put("trend: jackknife p of rho <= .6", stats.t.sf((z - math.atanh(0.6)) / error, 5))
    within = [stats.spearmanr([1, 2, 3, 4], row).statistic for row in more]
    put("trend: rho within units", within)
    put("trend: t p_S of units", stats.ttest_1samp(within, 0, alternative="greater").pvalue)
    put("trend: tau-b within tied unit", stats.kendalltau([1, 2, 3, 4], [1.0, 2.0, 2.0, 1.5]).statistic)


def slope():
    u, v = np.arange(1.0, 7), np.array([2.1, 1.9, 3.7, 4.4, 4.1, 6.3])
    line, t = stats.linregress(u, v), stats.t.ppf(0.975, 4)
    put("slope: estimate, p", [line.slope, line.pvalue], [0.8085714286, 0.006941710043])
    put("slope: 95 %", [line.slope - t * line.stderr, line.slope + t * line.stderr], [0.3691112872, 1.24803157])
    x = np.array([8.0, 16, 32, 64, 128, 256])
    y = np.array([1.32, 0.99, 0.80, 0.655, 0.58, 0.534])
    log = stats.linregress(np.log(x), np.log(y))
    put("log-log: estimate", log.slope, -0.2608789537)
    put("log-log: se", log.stderr, 0.02630540504)
    import statsmodels.api as sm
    design = np.column_stack([np.ones(6), np.log(x), np.log(x) ** 2])
    bend = sm.OLS(np.log(y), design).fit()
    put("log-log: quadratic coefficient, t, p", [bend.params[2], bend.tvalues[2], bend.pvalues[2]])


def families():
    q = [0.001, 0.012, 0.02, 0.04, 0.2]
    put("family: holm", multitest.multipletests(q, method="holm")[1], [0.005, 0.048, 0.06, 0.08, 0.2])
    put("family: bonferroni", multitest.multipletests(q, method="bonferroni")[1])
    put("family: holm of .03 .04", multitest.multipletests([0.03, 0.04], method="holm")[1], [0.06, 0.06])
    part = sorted([0.004, 0.03, 0.2])
    put("combination: k = 1, 2, 3 of .004 .03 .2", [(3 - k + 1) * part[k - 1] for k in (1, 2, 3)],
        [0.012, 0.06, 0.2])


def around():
    put("monte carlo error at .05, B = 9,999, 99,999", [math.sqrt(0.05 * 0.95 / b) for b in (9999, 99999)],
        [0.002179558452, 0.0006892058836])
    one, two = power.TTestPower(), power.TTestIndPower()
    put("power: d 1 n 8, d 2 n 5", [one.power(1.0, 8, 0.05), one.power(2.0, 5, 0.05)], [0.6808339582, 0.9088848681])
    # The definition tabulates 9.937850941, where statsmodels' solver stops; there the power is .80000005. This is
    # the root itself.
    exact = optimize.brentq(lambda n: one.power(1.0, n, 0.05) - 0.8, 5, 20, xtol=1e-13, rtol=1e-14)
    assert abs(exact - one.solve_power(1.0, None, 0.05, 0.8)) < 2e-6
    put("power: n for .8", exact)
    put("power: two arms d 1 n 10", two.power(1.0, 10, 0.05), 0.5620066466)
    s = D.std(ddof=1)
    put("noise: s, 95 %", [s, *(s * np.sqrt(7 / stats.chi2.ppf([0.975, 0.025], 7)))],
        [0.005566160513, 0.003680201439, 0.01132865115])
    put("noise: detectable paired, two arms",
        [(stats.t.ppf(0.975, 7) + stats.t.ppf(0.8, 7)) * s / 8**0.5,
         (stats.t.ppf(0.975, 14) + stats.t.ppf(0.8, 14)) * s * (2 / 8) ** 0.5],
        [0.00641675467, 0.00838497961])
    null = (np.arange(1, 200) * 37 % 199) / 400.0
    score = 0.52
    tau = np.sort(np.append(null, score))[189]
    put("null: tau, p, score", [tau, (1 + (null >= score).sum()) / 200, (score - tau) / (1 - tau)],
        [0.4725, 0.005, 0.09004739336])


def special():
    """[arguments…, value] from fifty-digit arithmetic; arguments are doubles, taken exactly."""
    mpmath.mp.dps = 60
    mpf, half = mpmath.mpf, mpmath.mpf(1) / 2

    def t_above(t, df):
        t, df = mpf(t), mpf(df)
        return half * mpmath.betainc(df / 2, half, 0, df / (df + t * t), regularized=True)

    def chi_above(x, df):
        return mpmath.gammainc(mpf(df) / 2, mpf(x) / 2, mpmath.inf, regularized=True)

    def chi_below(x, df):
        return mpmath.gammainc(mpf(df) / 2, 0, mpf(x) / 2, regularized=True)

    def binomial_at_least(k, n, p):
        p = mpf(p)
        return mpmath.fsum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))

    def nct_above(t, df, delta):
        t, df, delta = mpf(t), mpf(df), mpf(delta)
        log_front = mpmath.log(2) + df / 2 * mpmath.log(df / 2) - mpmath.loggamma(df / 2)

        def integrand(s):
            return mpmath.exp(log_front + (df - 1) * mpmath.log(s) - df * s * s / 2) * mpmath.ncdf(delta - t * s)

        spread = 1 / mpmath.sqrt(2 * df)
        ends = sorted({mpf(0) + mpf("1e-40"), *(max(mpf("1e-30"), 1 + j * spread) for j in range(-12, 13, 2)), 1 + 40 * spread})
        return mpmath.quad(integrand, ends)

    tables = {
        "normal-below": [(z, mpmath.ncdf(mpf(z))) for z in (-37.5, -30.0, -12.3, -6.0, -1.96, -0.5, -1e-9, 0.0, 0.7, 3.1)],
        "student-above": [(t, df, t_above(t, df)) for t, df in (
            (0.0, 3.0), (1e-6, 7.0), (0.3, 1.0), (1.5, 2.0), (2.2, 11.17667386), (3.620546554, 7.0), (12.7, 1.0),
            (40.0, 4.0), (1e4, 3.0), (1e9, 2.5), (1e40, 6.0), (1e60, 5.0), (1e150, 2.0), (1e299, 1.0), (37.0, 1e6),
            (2.0, 1e6), (0.5, 1e7), (25.0, 60.0), (300.0, 99.0), (8.0, 1234.5), (60.0, 500.0))],
        "chi-square-above": [(x, df, chi_above(x, df)) for x, df in (
            (0.01, 7.0), (1.69, 7.0), (7.0, 7.0), (16.0, 7.0), (200.0, 7.0), (1400.0, 9.0), (3.2, 1.0), (950.0, 1000.0), (1300.0, 1000.0))],
        "chi-square-below": [(x, df, chi_below(x, df)) for x, df in (
            (1e-80, 7.0), (0.01, 7.0), (1.69, 7.0), (0.5, 30.0), (700.0, 1000.0), (100.0, 1000.0))],
        "binomial-at-least": [(k, n, p, binomial_at_least(k, n, p)) for k, n, p in (
            (1, 1, 0.3), (8, 10, 0.5), (60, 60, 0.001), (100, 100, 0.001), (37, 100, 0.2), (500, 1000, 0.5), (900, 1000, 0.5),
            (3, 500, 0.01), (1, 20, 1e-12), (250, 300, 0.9))],
        "noncentral-above": [(t, df, d, nct_above(t, df, d)) for t, df, d in (
            (2.364624252, 7.0, 2.8284271247461903), (2.776445105, 4.0, 4.47213595499958), (2.0, 3.0, -1.0), (1.96, 200.0, 10.0),
            (12.706204736, 1.0, 1.4142135623730951), (2.1, 18.0, 0.0), (5.0, 30.0, 5.5), (-1.0, 12.0, 0.5))],
        "student-upper-quantile": [], "beta-quantile": [], "chi-square-upper-quantile": [],
    }
    # Quantiles are checked as inverses of exact probabilities at doubles, so the argument is the answer.
    for t, df in ((0.001, 5.0), (0.4, 3.0), (2.2, 11.2), (12.7, 1.0), (40.0, 4.0), (1e6, 9.0), (20.0, 400.0), (1.7, 1e5)):
        tables["student-upper-quantile"].append((t_above(t, df), df, t))
    for x, a, b in ((0.44, 8, 3), (1e-5, 1, 200), (0.97, 9, 2), (0.3, 30, 70), (1e-30, 3, 4), (0.5, 400, 400)):
        tables["beta-quantile"].append((mpmath.betainc(a, b, 0, mpf(x), regularized=True), a, b, x))
    for x, df in ((1.6, 7.0), (16.0, 7.0), (0.001, 1.0), (900.0, 1000.0), (60.0, 2.0)):
        tables["chi-square-upper-quantile"].append((chi_above(x, df), df, x))
    return {name: [[float(v) for v in row] for row in rows] for name, rows in tables.items()}


for part in (threshold, difference, proportion, trend, slope, families, around):
    part()
versions = {"python": sys.version.split()[0], "numpy": np.__version__, "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__, "mpmath": mpmath.__version__}
json.dump({"versions": versions, "values": VALUES, "special": special()}, sys.stdout, indent=1)
print()
