"""Other ways from N0 rows to the error of ridge regression on n; they share no code with ours.

Arrays are (sizes, regularisations), of mean square errors.
"""

import numpy as np
from scipy import optimize

CUTS = 10


def plug_in(X, y, sizes, lams):
    """Take the covariances of the sample for those of the population."""
    w, tau, hidden = _spectrum(X, y)
    free = len(y) - 1
    w, tau, hidden = w / free, tau / free, hidden / free
    return np.array([[_plugged(w, tau, hidden, n, lam) for lam in lams] for n in sizes])


def _plugged(w, tau, hidden, n, lam):
    def excess(log_kappa):
        kappa = np.exp(log_kappa)
        return kappa * (n - 1 - np.sum(w / (w + kappa))) - lam

    top = np.log((lam + w.sum()) / (n - 1)) + 1.0
    kappa = np.exp(optimize.brentq(excess, top - 40.0, top))
    r = w / (w + kappa)
    return (hidden + tau @ (1 - r) ** 2) * (1 + 1 / n) / (1 - np.sum(r**2) / (n - 1))


def generalised(X, y, sizes, lams):
    """Generalised cross-validation, which the same theory turns into predictions for n."""
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


def held_out(fit, X, y, sizes, seed):
    """Errors (quantities, sizes, λ) of fits to n rows, on the others, over random cuts.

    `fit` takes features, labels and the features of a test, and returns scores (tests, λ).
    """
    out = []
    for n in sizes:
        cuts = []
        for cut in range(CUTS):
            order = np.random.default_rng([seed, cut]).permutation(len(y))
            own, test = order[:n], order[n:]
            cuts.append(errors(y[test], fit(X[own], y[own], X[test])))
        out.append(np.mean(cuts, axis=0))
    return np.array(out).transpose(1, 0, 2)


def errors(y, scores):
    """Mean square and part misclassified, (2, λ)."""
    y = y[:, None]
    return np.array([np.mean((y - scores) ** 2, axis=0), np.mean(y * scores <= 0, axis=0)])


def _spectrum(X, y):
    """Eigenvalues of the kernel, energies of the labels, and what no direction shows of them."""
    U, s, _ = np.linalg.svd(X - X.mean(0), full_matrices=False)
    keep = s > 1e-10 * s.max()
    y = y - y.mean()
    tau = (U[:, keep].T @ y) ** 2
    return s[keep] ** 2 / X.shape[1], tau, max(float(y @ y - tau.sum()), 0.0)
