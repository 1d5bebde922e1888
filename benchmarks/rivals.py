"""Fits, measurements and other ways from N0 rows to the error on n; no code is shared with ours.

A fit takes features (rows, p), labels, the features of a test and regularisations λ, and returns
scores (tests, λ). Its objective is the sum of losses of f = x·w/√p + b, plus λ/2 |w|²; the
intercept b is free.
"""

import warnings

import numpy as np
from scipy import optimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR

HELD_OUT_CUTS = 6
CANDIDATES = np.geomspace(1.3e-3, 1.3e3, 25)
"""Regularisations among which leave-one-out chooses."""


def ridge(X, y, test, lams):
    centre, mean, p = X.mean(0), y.mean(), X.shape[1]
    U, s, Vt = np.linalg.svd(X - centre, full_matrices=False)
    shrunk = s[:, None] / (s[:, None] ** 2 + p * np.asarray(lams)) * (U.T @ (y - mean))[:, None]
    return mean + (test - centre) @ (Vt.T @ shrunk)


def logistic(X, y, test, lams):
    if abs(y.sum()) == len(y):  # one class alone: all scores are large, and the same
        return np.full((len(test), len(lams)), y[0] * np.log(2 * len(y) + 1))
    p = X.shape[1]
    fits = (LogisticRegression(C=1 / (lam * p), tol=1e-5, max_iter=5000) for lam in lams)
    return np.column_stack([fit.fit(X, y).decision_function(test) for fit in fits])


def hinge(X, y, test, lams):
    fits = (SVC(kernel="linear", C=1 / (lam * X.shape[1])) for lam in lams)
    return np.column_stack([fit.fit(X, y).decision_function(test) for fit in fits])


def absolute(X, y, test, lams):
    fits = (SVR(kernel="linear", epsilon=0.0, C=1 / (lam * X.shape[1])) for lam in lams)
    return np.column_stack([fit.fit(X, y).predict(test) for fit in fits])


def huber(X, y, test, lams):
    """Residuals count by their square up to 1, then by their size."""
    X, test = X / np.sqrt(X.shape[1]), test / np.sqrt(X.shape[1])
    found = [optimize.minimize(_huber, _start(X, y), (X, y, lam), jac=True).x for lam in lams]
    return np.column_stack([test @ v[1:] + v[0] for v in found])


def _start(X, y):
    return np.append(y.mean(), np.zeros(X.shape[1]))


def _huber(v, X, y, lam):
    r = y - X @ v[1:] - v[0]
    bent = np.clip(r, -1.0, 1.0)
    value = np.sum(bent * (r - bent / 2)) + lam / 2 * v[1:] @ v[1:]
    return value, np.append(-bent.sum(), lam * v[1:] - X.T @ bent)


def square_of(y, f):
    return (y[:, None] - f) ** 2


def wrong_of(y, f):
    return (y[:, None] * f <= 0).astype(float)


def log_loss_of(y, f):
    return np.logaddexp(0.0, -y[:, None] * f)


def best_ridge(X, y):
    """The candidate of least exact leave-one-out error."""
    U, s, _ = np.linalg.svd(X - X.mean(0), full_matrices=False)
    shrink = s[:, None] ** 2 / (s[:, None] ** 2 + X.shape[1] * CANDIDATES)
    y = y - y.mean()
    left = (y[:, None] - U @ (shrink * (U.T @ y)[:, None])) / (1 - 1 / len(y) - U**2 @ shrink)
    return float(CANDIDATES[np.argmin(np.sum(left**2, axis=0))])


def measure(fit, losses, X, y, *, lams, sizes, home, seed, cuts):
    """Errors of fits to n rows on all the others, over random cuts.

    Returns arrays (losses, sizes, λ): the errors, their relative deviations, their ratios to the
    error at `home` rows, and the deviations of the logarithms of these. Both errors of a ratio are
    those on the same rows.
    """
    each = np.full((cuts, len(y), len(losses), len(sizes), len(lams)), np.nan)
    for cut in range(cuts):
        order = np.random.default_rng([seed, cut]).permutation(len(y))
        for i, n in enumerate(sizes):
            test = order[n:]
            scores = fit(X[order[:n]], y[order[:n]], X[test], lams)
            for j, loss in enumerate(losses):
                each[cut, test, j, i] = loss(y[test], scores)
    at_home = each[:, :, :, [sizes.index(home)]]
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore")  # rows that were never in a test
        error = np.nanmean(each, axis=1).mean(0)
        both = np.nanmean(each + 0 * at_home, axis=1).mean(0)
        same = np.nanmean(at_home + 0 * each, axis=1).mean(0)
        noise = _noise(each / error, np.array(sizes), np.array(sizes))
        less, more = np.minimum(sizes, home), np.maximum(sizes, home)
        fall_noise = _noise(each / both - at_home / same, less, more)
    return error, noise, both / same, fall_noise


def _noise(each, fitted, tested):
    """Deviations of means over cuts and rows from the population, of which these are a sample.

    Training samples of n rows out of R overlap by n/R, and tests by the rest. So what rows have in
    common in all cuts averages only over R rows, the rest of them over cuts as well; `fitted` are
    the sizes that matter for the overlap of training samples, `tested` those left out of tests.
    """
    cuts, R, n = len(each), each.shape[1], tested[:, None]
    m, shared = R - n, 1 - 1 / cuts
    means = np.nanmean(each, axis=1)
    off = each - means.mean(0)
    row, times = np.nanvar(each, axis=1).mean(0), np.sum(np.isfinite(each), axis=0)
    pairs = np.nansum(off, axis=0) ** 2 - np.nansum(off**2, axis=0)
    lasting = np.clip(pairs.sum(0) / (times * (times - 1)).sum(0), 0.0, row)
    passing = row - lasting
    train = np.maximum(means.var(0, ddof=1) - (lasting * n / R + passing) / m, 0.0)
    train = train * (1 / cuts + shared * fitted[:, None] / R)
    return np.sqrt(train + lasting * (1 / (cuts * m) + shared / R) + passing / (cuts * m))


def held_out(fit, losses, X, y, *, lams, sizes, seed):
    """Errors (losses, sizes, λ) of fits to parts of the sample at hand, on the rest of it."""
    out = []
    for n in sizes:
        cuts = []
        for cut in range(HELD_OUT_CUTS):
            order = np.random.default_rng([seed, cut]).permutation(len(y))
            own, test = order[:n], order[n:]
            scores = fit(X[own], y[own], X[test], lams)
            cuts.append([loss(y[test], scores).mean(0) for loss in losses])
        out.append(np.mean(cuts, axis=0))
    return np.array(out).transpose(1, 0, 2)


def generalised(X, y, sizes, lams):
    """Generalised cross-validation of ridge, which theory turns into predictions (sizes, λ)."""
    k, tau, hidden = _spectrum(X, y)
    free = len(y) - 1
    k, tau = np.append(k, 0.0), np.append(tau, hidden)
    count = np.append(np.ones(len(k) - 1), free - len(k) + 1)
    own = np.geomspace(1e-9, 1e3, 600)[:, None] * k.max()
    R1, R2 = (count @ (1 / (k + own) ** j).T for j in (1, 2))
    Y2 = tau @ (1 / (k + own) ** 2).T
    D1, D2 = free - own[:, 0] * R1, free - R1**2 / R2
    out = []
    for n in sizes:
        lam, error = (n - 1 - D1) / R1, Y2 / R2 * (1 + 1 / n) / (1 - D2 / (n - 1))
        good = (lam > 0) & (n - 1 > D2)
        out.append(np.interp(np.log(lams), np.log(lam[good]), error[good]))
    return np.array(out)


def power_law(measured, left_out, own, sizes):
    """Fit a + b n^-c to errors (sizes, λ) on rows held out and to leave-one-out at N0 rows.

    `own` are the sizes of the former and N0.
    """
    errors = np.vstack([measured, left_out])
    return np.array([_power_law(column, np.array(own), sizes) for column in errors.T]).T


def _power_law(errors, own, sizes):
    """Least relative squares, a and b not negative, for the best of many c."""
    weight = 1.0 / np.maximum(errors, 1e-3)
    fits = []
    for c in np.linspace(0.05, 2.0, 40):
        columns = np.column_stack([np.ones(len(own)), (own / own[-1]) ** -c])
        (a, b), rest = optimize.nnls(columns * weight[:, None], errors * weight)
        fits.append((rest, a, b, c))
    _, a, b, c = min(fits)
    return a + b * (np.asarray(sizes) / own[-1]) ** -c


def _spectrum(X, y):
    """Eigenvalues of the kernel, energies of the labels, and what no direction shows of them."""
    U, s, _ = np.linalg.svd(X - X.mean(0), full_matrices=False)
    keep = s > 1e-10 * s.max()
    y = y - y.mean()
    tau = (U[:, keep].T @ y) ** 2
    return s[keep] ** 2 / X.shape[1], tau, max(float(y @ y - tau.sum()), 0.0)
