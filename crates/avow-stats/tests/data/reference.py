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
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats import inter_rater, multitest, power, weightstats
from statsmodels.stats import proportion as shares

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


def signed_rank_counts(n):
    counts = np.array([1.0])
    for rank in range(1, n + 1):
        counts = np.append(counts, np.zeros(rank)) + np.append(np.zeros(rank), counts)
    return counts


def ranks():
    walsh = np.sort([(D[i] + D[j]) / 2 for i in range(8) for j in range(i, 8)])
    k = int((np.cumsum(signed_rank_counts(8)) / 2**8 <= 0.025).sum())
    put("d: wilcoxon p, estimate, 95 %", [stats.wilcoxon(D, method="exact").pvalue, np.median(walsh), walsh[k - 1], walsh[-k]],
        [0.015625, 0.007, 0.002, 0.012])
    first, second = X[:5], Y[:5]
    gaps = np.sort([first[list(a)].mean() - second[list(b)].mean() for q in range(1, 6)
                    for a in itertools.combinations(range(5), q) for b in itertools.combinations(range(5), q)])
    tail = (1 + (gaps <= 1e-15).sum()) / 252
    put("5 v 5: permutation p_S, q, 95 %", [tail, 2 * tail, gaps[5], gaps[-6]], [0.06746031746, 0.1349206349, -0.004, 0.018])
    untied = stats.mannwhitneyu(first, [0.9005, 0.9035, 0.9085, 0.8965, 0.9055], method="exact")
    put("5 v 5: mann-whitney two-sided p", untied.pvalue, 0.2222222222)
    put("x v y: shift", np.median(np.subtract.outer(X, Y)), 0.0075)
    both = np.concatenate([X, Y])
    midranks = np.rint(2 * stats.rankdata(np.round(both, 6))).astype(int)
    sums = np.array([midranks[list(c)].sum() for c in itertools.combinations(range(16), 8)])
    put("x v y: midrank permutation greater, less",
        [(sums >= midranks[:8].sum()).mean(), (sums <= midranks[:8].sum()).mean()])


def ratios():
    a, b = np.array([10.2, 9.8, 11.1, 10.5, 9.9, 10.8]), np.array([6.1, 5.7, 6.9, 6.0, 6.2, 6.4])
    logs = np.log(a / b)
    put("ratio: geometric, 95 %", [math.exp(logs.mean()), *np.exp(t_interval(logs))], [1.671488771, 1.609187964, 1.736201596])
    square, v = stats.t.ppf(0.975, 5) ** 2, np.cov(a, b) / 6
    lead, middle, last = b.mean()**2 - square * v[1, 1], a.mean() * b.mean() - square * v[0, 1], a.mean()**2 - square * v[0, 0]
    root = math.sqrt(middle**2 - lead * last)
    put("ratio: fieller, 95 %", [a.mean() / b.mean(), (middle - root) / lead, (middle + root) / lead],
        [1.670241287, 1.609460701, 1.736883986])
    put("ratio: fieller p of ratio <= 1.6", stats.ttest_1samp(a - 1.6 * b, 0, alternative="greater").pvalue)
    welch = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
    put("ratio: unpaired, 95 %", np.exp([np.log(a).mean() - np.log(b).mean(), *welch.confidence_interval(0.95)]))


def two_shares():
    put("9/10 v 4/10: fisher greater, doubled",
        [stats.fisher_exact([[9, 1], [4, 6]], "greater").pvalue, 2 * stats.fisher_exact([[9, 1], [4, 6]], "greater").pvalue],
        [0.0286377709, 0.0572755418])
    put("9/10 v 4/10: newcombe 95 %", shares.confint_proportions_2indep(9, 10, 4, 10, method="newcomb", compare="diff"),
        [0.08159397543, 0.7459363249])
    put("8/10: wilson 95 %", stats.binomtest(8, 10).proportion_ci(0.95, "wilson"), [0.4901624715, 0.9433178485])
    put("wilson 9/10, 4/10", [*stats.binomtest(9, 10).proportion_ci(0.95, "wilson"), *stats.binomtest(4, 10).proportion_ci(0.95, "wilson")],
        [0.5958499732, 0.9821237869, 0.1681803297, 0.6873262303])
    put("mcnemar 6 v 1, 9 v 2", [stats.binomtest(6, 7).pvalue, stats.binomtest(9, 11).pvalue], [0.125, 0.0654296875])


def correlations():
    u, v = np.arange(1.0, 7), np.array([2.1, 1.9, 3.7, 4.4, 4.1, 6.3])
    rho = stats.spearmanr(u, v).statistic
    every = np.array([stats.spearmanr(u, order).statistic for order in itertools.permutations(v)])
    tail = (every >= rho - 1e-12).mean()
    z, error = math.atanh(rho), math.sqrt((1 + rho**2 / 2) / 3)
    reach = stats.norm.ppf(0.975) * error
    put("spearman: rho, exact one-sided, two-sided", [rho, tail, 2 * tail], [0.8857142857, 0.01666666667, 0.03333333333])
    put("spearman: 95 %", [math.tanh(z - reach), math.tanh(z + reach)], [0.06638561523, 0.9916441507])
    tau = stats.kendalltau(u, v, method="exact")
    put("kendall: tau, p", [tau.statistic, tau.pvalue], [0.7333333333, 0.05555555556])
    pearson = stats.pearsonr(u, v)
    put("pearson: r, 95 %", [pearson.statistic, *pearson.confidence_interval(0.95)], [0.9311780245, 0.4896466516, 0.9926133931])
    rows = [[1, 2, 3, 4], [1.2, 1.9, 3.5, 3.1], [0.7, 2.2, 2.1, 4]]
    page = stats.page_trend_test(rows, method="exact")
    put("page: L, p", [page.statistic, page.pvalue], [88, 0.002893518519])


def slopes():
    u, v = np.arange(1.0, 7), np.array([2.1, 1.9, 3.7, 4.4, 4.1, 6.3])
    robust = sm.OLS(v, sm.add_constant(u)).fit(cov_type="HC3", use_t=True)
    put("hc3: se, p", [robust.bse[1], robust.pvalues[1]], [0.2341047395, 0.02596214361])
    theil = stats.theilslopes(v, u)
    put("theil-sen: slope, 95 %", [theil.slope, theil.low_slope, theil.high_slope], [0.8, -0.2, 1.8])
    x, y = np.array([8.0, 16, 32, 64, 128, 256]), np.array([1.32, 0.99, 0.80, 0.655, 0.58, 0.534])

    def solve(alpha, weights):
        design = np.column_stack([x**-alpha, np.ones(6)]) * weights[:, None]
        best, *_ = np.linalg.lstsq(design, y * weights, rcond=None)
        return best, ((y * weights - design @ best) ** 2).sum()

    for name, weights, tabulated in (
            ("equal", np.ones(6), [0.671834454, 3.530748147, 0.4461453365, 0.0001757067019, 0.5864819108, 0.761190951]),
            ("relative", 1 / y, None)):

        def slope_of_squares(alpha):
            (a, c), _ = solve(alpha, weights)
            return (weights**2 * (y - a * x**-alpha - c) * x**-alpha * np.log(x)).sum()

        alpha = optimize.brentq(slope_of_squares, 0.3, 1.2, xtol=1e-15)
        (a, c), least = solve(alpha, weights)
        limit = least * (1 + stats.f.ppf(0.95, 1, 3) / 3)
        ends = [optimize.brentq(lambda q: solve(q, weights)[1] - limit, *pair, xtol=1e-14) for pair in ((0.01, alpha), (alpha, 5))]
        put(f"power-offset {name}: alpha, a, c, S, 95 %", [alpha, a, c, least, *ends], tabulated)
    put("power-law tail from 8", 1 + 6 / np.log(x / 8).sum(), 1.577078016)


def agreement():
    table = np.array([[20, 5, 1], [4, 15, 3], [1, 2, 9]])
    plain, quadratic, linear = (inter_rater.cohens_kappa(table, wt=wt) for wt in (None, "quadratic", "linear"))
    put("kappa: value, se, 95 %", [plain.kappa, plain.std_kappa, plain.kappa_low, plain.kappa_upp],
        [0.5844155844, 0.08916395077, 0.4096574522, 0.7591737167])
    put("kappa quadratic: value, se", [quadratic.kappa, quadratic.std_kappa], [0.6875, 0.08989804555])
    put("kappa linear: value, se", [linear.kappa, linear.std_kappa])
    put("fleiss kappa", inter_rater.fleiss_kappa(np.array([[3, 0, 0], [2, 1, 0], [0, 3, 0], [0, 1, 2], [0, 0, 3], [1, 1, 1]])), 0.4166666667)


def more_families():
    q = [0.001, 0.012, 0.02, 0.04, 0.2]
    for word, name, tabulated in (
            ("hochberg", "simes-hochberg", [0.005, 0.048, 0.06, 0.08, 0.2]), ("hommel", "hommel", [0.005, 0.04, 0.06, 0.08, 0.2]),
            ("bh", "fdr_bh", [0.005, 0.03, 0.03333333333, 0.05, 0.2]),
            ("by", "fdr_by", [0.01141666667, 0.0685, 0.07611111111, 0.1141666667, 0.4566666667])):
        put(f"family: {word}", multitest.multipletests(q, method=name)[1], tabulated)
    put("family: hochberg of .03 .04", multitest.multipletests([0.03, 0.04], method="simes-hochberg")[1], [0.04, 0.04])
    columns = np.column_stack([D, D * 0.5 + 0.001 * np.array([1, -2, 1, 0, 2, -1, 1, -1]),
                               0.001 * np.array([1, -2, 3, 0, -1, 2, -2, 1])])
    signs = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)

    def t(z):
        return z.mean(-2) / z.std(-2, ddof=1) * 8**0.5

    observed, flipped = abs(t(columns)), abs(t(signs[:, :, None] * columns[None]))
    order = np.argsort(-observed)
    step = np.maximum.accumulate([(flipped[:, order[i:]].max(1) >= observed[order[i]] - 1e-12).mean() for i in range(3)])
    put("max: t", observed, [3.620546554, 2.619543987, 0.3859224925])
    put("max: single-step", [(flipped.max(1) >= o - 1e-12).mean() for o in observed], [0.0390625, 0.1328125, 0.9609375])
    put("max: step-down by rank", step, [0.0390625, 0.125, 0.84375])


def censored():
    at = np.array([100.0, 250, 250, 400, 700, 1000, 1000])
    event = np.array([1, 1, 0, 1, 1, 0, 0], bool)
    curve = stats.ecdf(stats.CensoredData.right_censored(at, ~event))
    put("survival: S", curve.sf.probabilities[:4], [0.8571428571, 0.7142857143, 0.5357142857, 0.3571428571])
    ends = curve.sf.confidence_interval(0.95, method="log-log")
    put("survival: log-log at 250", [ends.low.probabilities[1], ends.high.probabilities[1]], [0.2581536655, 0.919797456])
    times = np.unique(at[event])
    survival, area, before, segments = 1.0, 0.0, 0.0, []
    for time in times:
        risk, events = (at >= time).sum(), (event & (at == time)).sum()
        area += survival * (time - before)
        survival, before = survival * (1 - events / risk), time
        segments.append((time, risk, events, survival))
    area += survival * (1000 - before)
    edges = [s[0] for s in segments] + [1000]
    variance = 0.0
    for i, (_, risk, events, _) in enumerate(segments):
        later = sum(segments[j][3] * (edges[j + 1] - edges[j]) for j in range(i, len(segments)))
        variance += later**2 * events / (risk * (risk - events))
    put("survival: restricted mean, se", [area, math.sqrt(variance)], [603.5714286, 136.445733])
    rank = stats.logrank(stats.CensoredData.right_censored(at, ~event), [90.0, 120, 200, 260, 300, 410])
    put("survival: log-rank z, p", [rank.statistic, rank.pvalue], [-1.916931935, 0.05524657937])


def anytime():
    n, s = 8, D.std(ddof=1)
    grown = 1 + n
    ratio = (math.sqrt(grown) / 0.05) ** (2 / n)
    t = D.mean() / s * n**0.5
    put("mixture: half-width, e at 0",
        [s / n**0.5 * math.sqrt((n - 1) * (ratio - 1) / (1 - ratio / grown)),
         grown**-0.5 * ((1 + t**2 / 7) / (1 + t**2 / (7 * grown))) ** (n / 2)], [0.008365481746, 10.65677427])
    put("robbins: sigma 1 rho 1 n 10", math.sqrt(2 * 11 / 100 * math.log(math.sqrt(11) / 0.05)), 0.9606401929)


def calibration():
    stated = np.array([0.55, 0.62, 0.71, 0.74, 0.83, 0.88, 0.93, 0.97])
    happened = np.array([1, 0, 1, 1, 0, 1, 1, 1.0])
    bins = np.minimum((stated * 5).astype(int), 4)
    gaps = np.bincount(bins, happened, 5) - np.bincount(bins, stated, 5)
    put("calibration: ECE of 5 bins, Brier", [abs(gaps).sum() / 8, ((stated - happened) ** 2).mean()], [0.14125, 0.1809625])
    put("calibration: log score", -np.log(np.where(happened == 1, stated, 1 - stated)).mean())


def interactions():
    cells = [X[:4], X[4:], Y[:4], Y[4:]]
    c = np.array([1, -1, -1, 1.0])
    v = c**2 * [cell.var(ddof=1) / 4 for cell in cells]
    error = math.sqrt(v.sum())
    estimate, df = (c * [cell.mean() for cell in cells]).sum(), v.sum() ** 2 / (v**2 / 3).sum()
    put("contrast: estimate, p", [estimate, 2 * stats.t.sf(abs(estimate / error), df)], [-0.00075, 0.9032140846])
    put("contrast: 95 %", [estimate - stats.t.ppf(0.975, df) * error, estimate + stats.t.ppf(0.975, df) * error])


def cases():
    """Random data with what the packages say about them: {kind: [{inputs…, want: […]}]}. The generator's seed is fixed."""
    rng = np.random.default_rng(20261130)
    out = {}

    def case(kind, want, **inputs):
        as_lists = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        out.setdefault(kind, []).append(as_lists | {"want": [float(w) for w in np.ravel(want)]})

    for n, m in ((3, 4), (5, 5), (6, 9), (8, 8), (10, 7), (12, 20), (15, 15), (25, 18), (30, 40), (9, 3)):
        a, b = rng.normal(0.3, 1, n), rng.normal(0, 1.7, m)
        case("welch", [stats.ttest_ind(a, b, equal_var=False).pvalue, *stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.99)], a=a, b=b)
        case("student", [stats.ttest_ind(a, b).pvalue, *stats.ttest_ind(a, b).confidence_interval(0.99)], a=a, b=b)
        case("mann-whitney", [stats.mannwhitneyu(a, b, alternative=o, method="exact").pvalue for o in ("greater", "less")], a=a, b=b)
        case("wilcoxon", [stats.wilcoxon(a, alternative=o, method="exact").pvalue for o in ("greater", "less")], a=a)
        case("t", [stats.ttest_1samp(a, 0.1).pvalue, *stats.ttest_1samp(a, 0.1).confidence_interval(0.9)], a=a, bound=0.1)
    for n in (6, 7, 9, 12, 20, 35):
        u = rng.normal(size=n)
        v = 0.6 * u + rng.normal(size=n)
        line = stats.linregress(u, v)
        t = stats.t.ppf(0.975, n - 2)
        case("least-squares", [line.slope, line.pvalue, line.slope - t * line.stderr, line.slope + t * line.stderr], u=u, v=v)
        robust = sm.OLS(v, sm.add_constant(u)).fit(cov_type="HC3", use_t=True)
        case("hc3", [robust.pvalues[1], *robust.conf_int()[1]], u=u, v=v)
        theil = stats.theilslopes(v, u)
        case("theil-sen", [theil.slope, theil.low_slope, theil.high_slope], u=u, v=v)
        case("coefficients", [stats.spearmanr(u, v).statistic, stats.kendalltau(u, v).statistic, stats.pearsonr(u, v).statistic,
                              *stats.pearsonr(u, v).confidence_interval(0.95)], u=u, v=v)
        if n <= 7:
            every = [stats.spearmanr(u, o).statistic for o in itertools.permutations(v)]
            rho = stats.spearmanr(u, v).statistic
            case("spearman-exact", [(np.array(every) >= rho - 1e-12).mean(), (np.array(every) <= rho + 1e-12).mean()], u=u, v=v)
            case("kendall-exact", [stats.kendalltau(u, v, alternative=o, method="exact").pvalue for o in ("greater", "less")], u=u, v=v)
    for k1, n1, k2, n2 in ((1, 7, 5, 9), (0, 12, 4, 11), (30, 40, 22, 41), (7, 7, 3, 8), (130, 400, 99, 380), (5, 5, 5, 5), (12, 13, 12, 12)):
        case("fisher", [stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]], o).pvalue for o in ("greater", "less")], counts=[k1, n1, k2, n2])
        case("newcombe", shares.confint_proportions_2indep(k1, n1, k2, n2, method="newcomb", compare="diff"), counts=[k1, n1, k2, n2])
        case("wilson", stats.binomtest(k1, n1).proportion_ci(0.95, "wilson"), counts=[k1, n1])
        case("clopper-pearson", stats.binomtest(k1, n1).proportion_ci(0.95, "exact"), counts=[k1, n1])
    for size in (2, 3, 5, 8, 13, 40):
        q = np.sort(rng.uniform(size=size) ** 3)
        rng.shuffle(q)
        for word, name in (("holm", "holm"), ("hochberg", "simes-hochberg"), ("hommel", "hommel"), ("bonferroni", "bonferroni"),
                           ("bh", "fdr_bh"), ("by", "fdr_by")):
            case(word, multitest.multipletests(q, method=name)[1], q=q)
    for size, k in ((12, 2), (40, 3), (55, 4), (200, 3)):
        a = rng.integers(0, k, size)
        b = np.where(rng.uniform(size=size) < 0.6, a, rng.integers(0, k, size))
        table = np.zeros((k, k), int)
        np.add.at(table, (a, b), 1)
        for weighting in (None, "linear", "quadratic"):
            found = inter_rater.cohens_kappa(table, wt=weighting)
            case("kappa", [found.kappa, found.std_kappa], a=a, b=b, k=k, weighting=weighting or "none")
        counts = rng.multinomial(5, np.ones(k) / k, size)
        case("fleiss", inter_rater.fleiss_kappa(counts), counts=counts)
    for n, m in ((12, 9), (30, 25), (6, 40)):
        a, b = np.round(rng.exponential(2, n), 1) + 0.1, np.round(rng.exponential(3, m), 1) + 0.1
        ea, eb = rng.uniform(size=n) < 0.8, rng.uniform(size=m) < 0.7
        one, two = (stats.CensoredData.right_censored(t, ~e) for t, e in ((a, ea), (b, eb)))
        found = stats.logrank(one, two)
        case("log-rank", [found.statistic, found.pvalue], a=a, ea=ea, b=b, eb=eb)
        case("survival", stats.ecdf(one).sf.evaluate([0.5, 1.0, 2.0, 4.0]), a=a, ea=ea, at=[0.5, 1.0, 2.0, 4.0])
    for n, k in ((3, 4), (6, 3), (10, 5)):
        rows = np.array([rng.permutation(k) + 0.1 * rng.uniform(size=k) + 0.4 * np.arange(k) for _ in range(n)])
        found = stats.page_trend_test(rows, method="exact")
        case("page", [found.statistic, found.pvalue], rows=rows)
    one, two = power.TTestPower(), power.TTestIndPower()
    for effect, n in ((0.3, 12), (0.8, 6), (1.5, 4), (0.5, 40)):
        case("power-one", one.power(effect, n, 0.01), effect=effect, n=n)
        case("power-two", two.power(effect, n, 0.05), effect=effect, n=n)
    return out


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


for part in (threshold, difference, proportion, trend, slope, families, around, ranks, ratios, two_shares, correlations,
             slopes, agreement, more_families, censored, anytime, calibration, interactions):
    part()
versions = {"python": sys.version.split()[0], "numpy": np.__version__, "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__, "mpmath": mpmath.__version__}
json.dump({"versions": versions, "values": VALUES, "special": special(), "cases": cases()}, sys.stdout, indent=1)
print()
