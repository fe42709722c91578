# SPDX-License-Identifier: Apache-2.0
"""Writes golden_trend.json and golden_quantile.json beside itself: what scipy, pymannkendall and numpy make of series
that look random but are always the same. Run with scipy 1.17.1, pymannkendall 1.4.3, numpy 2.4.6:

    python -m venv golden && golden/bin/pip install scipy==1.17.1 pymannkendall==1.4.3 numpy==2.4.6
    golden/bin/python tests/data/make_golden.py
"""
import json
import math
import pathlib
import warnings

import numpy
import pymannkendall
from scipy import stats

FOLDER = pathlib.Path(__file__).parent
MASK = 2**64 - 1


def scrambled(count, seed):
    """Numbers in [0, 1) from a linear congruential generator, each exact in a double."""
    state = seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        yield (state >> 32) / 2**32


def series():
    """Names and values: noise, trends under noise, ties, autocorrelation, saw-tooths, no change."""
    for n in (4, 5, 7, 8, 12, 13, 25, 48, 100, 200):
        noise = list(scrambled(n, n))
        yield f"noise of {n}", noise
        yield f"ramp under noise of {n}", [x + 2 * i / n for i, x in enumerate(noise)]
        yield f"fall under noise of {n}", [x - 2 * i / n for i, x in enumerate(noise)]
        yield f"ties of {n}", [math.floor(4 * x) for x in noise]
        yield f"pages of {n}", [4096.0 * math.floor(5 * x + i / 8) for i, x in enumerate(noise)]
        yield f"saw-tooth of {n}", [i % 5 + x / 8 for i, x in enumerate(noise)]
        yield f"constant of {n}", [7.0] * n
        walk, before = [], 0.0
        for x in noise:
            before = 0.7 * before + x - 0.5
            walk.append(before)
        yield f"autocorrelated of {n}", walk


def finite(x):
    return float(x) if math.isfinite(x) else None


def trend_of(name, y):
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = pymannkendall.original_test(y)
        modified = pymannkendall.hamed_rao_modification_test(y)
        even = stats.theilslopes(y, numpy.arange(len(y)))
        gaps = numpy.cumsum([1 + math.floor(4 * u) for u in scrambled(len(y), 99)])  # 1 to 4 apart
        uneven = stats.theilslopes(y, gaps)
        twice = stats.theilslopes(y, gaps // 3)  # some x are equal
    slopes = [{"x": [int(x) for x in xs], "slope": finite(s.slope), "low": finite(s.low_slope),
               "high": finite(s.high_slope)}
              for xs, s in ((range(len(y)), even), (gaps, uneven), (gaps // 3, twice)) if math.isfinite(s.slope)]
    constant = plain.var_s == 0
    exact = len(set(y)) == len(y) <= 30
    p_exact = stats.kendalltau(range(len(y)), y, method="exact", alternative="greater").pvalue if exact else None
    return {"name": name, "y": y, "s": int(plain.s), "variance": float(plain.var_s), "z": float(plain.z),
            "p_two_sided": float(plain.p), "p_rising": float(stats.norm.sf(plain.z)),
            "p_exact": None if p_exact is None else float(p_exact),
            "hamed_rao": None if constant else {"factor": float(modified.var_s / plain.var_s), "z": finite(modified.z),
                                                "p_two_sided": finite(modified.p)},
            "theil_sen": slopes}


def interval(n, q):
    """Ranks, from 1, of the order statistics that bound the quantile with at most 2.5% on each side: the greatest low
    with P(B < low) <= 0.025 and the least high with P(B >= high) <= 0.025, B the number of n samples below the quantile.
    0 and n + 1 stand for no bound."""
    b = stats.binom(n, q)
    low = int(b.ppf(0.025))
    while b.cdf(low - 1) > 0.025:
        low -= 1
    while b.cdf(low) <= 0.025:
        low += 1
    high = int(b.ppf(0.975)) + 1
    while b.sf(high - 2) <= 0.025:
        high -= 1
    while b.sf(high - 1) > 0.025:
        high += 1
    return low, high


def quantile_of(n, q):
    samples = sorted(math.floor(300000 * u) + 400000 for u in scrambled(n, 12345 + n))
    low, high = interval(n, q)
    value = float(numpy.quantile(samples, q, method="linear"))  # percentile divides by 100, which is not exact for 99.9
    return {"seed": 12345 + n, "count": n, "q": q, "value": value, "low_rank": low, "high_rank": high}


def write(name, lines):
    (FOLDER / name).write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")


write("golden_trend.json", [trend_of(name, y) for name, y in series()])
write("golden_quantile.json",
      [quantile_of(n, q) for n in (1, 2, 3, 5, 6, 10, 71, 72, 100, 367, 368, 1000, 3687, 3688, 20000)
       for q in (0.05, 0.5, 0.95, 0.99, 0.999)])
