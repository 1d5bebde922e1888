"""Random models of several classes, against equations solved anew.

``python benchmarks/several_classes.py [square] [softmax] [unequal] [fits]``: so many models of each
loss. The square loss is solved as ridge regression on all samples together, of which only the
covariances of x with itself and with the one-hot labels matter, and its error is measured on drawn
scores. Softmax of classes that are alike is solved by plain iteration with a proximal map by
Newton's method, on normal samples; that of three unequal classes on Gauss–Hermite nodes, with K × K
matrices. Prints the worst differences, and every model that is off. Then exact fits of drawn
samples, with K = 3, 5, 10 and 20 classes, of the square loss, softmax and one-vs-rest, beside the
theory with its terms of finite size: z-scores of each quantity.
"""

import itertools
import sys

import numpy as np
from scipy.optimize import brentq

import hiddenmanifold as hm

ROWS = 400_000
"""Scores drawn of each class, for an error to some 1e-3."""
SAMPLES = 40_000
"""Normal samples of the averages of softmax: the answer is off by a few of their 0.5 %."""
FAR = 5.0
"""Standard errors that are too many."""


def random_classes(rng, *, alike):
    """A teacher, and its priors and centred Gram matrix."""
    K = int(rng.integers(2, 9))
    distance = float(rng.uniform(0.5, 4.0))
    if alike:
        return hm.teachers.Classes(K, distance)
    priors = rng.dirichlet(np.full(K, 3.0)) * 0.9 + 0.1 / K
    means = rng.standard_normal((K, int(rng.integers(1, K + 1)))) * distance / 2.0
    return hm.teachers.Classes(gram=means @ means.T, priors=priors)


def point(rng):
    alpha, lam = (float(np.exp(rng.uniform(*ends))) for ends in ((-1.2, 1.2), (-4.0, 2.0)))
    return alpha, lam


def predicted(teacher, loss, alpha, lam, *, intercept=True):
    model = hm.Model(
        activation="identity",
        projection="orthogonal",
        teacher=teacher,
        loss=loss,
        intercept=intercept,
    )
    return hm.predict(model, n_over_p=alpha, d_over_p=1.0, regularisation=lam)


def square_anew(teacher, alpha, lam, *, intercept):
    """Mean square error, means and covariance of the scores: white features, kernel 1/p."""
    k = brentq(lambda x: x * (alpha - 1.0 / (1.0 + x)) - lam, 1e-14, 1e9, xtol=1e-18)
    shares, K = teacher.shares, teacher.number
    values, vectors = np.linalg.eigh(teacher.centred_gram)
    means = vectors * np.sqrt(np.maximum(values, 0.0))
    omega, cross = np.eye(K) + means.T @ (shares[:, None] * means), (shares[:, None] * means).T
    inverse = np.linalg.inv(omega + k * np.eye(K))
    T1, T2 = cross.T @ inverse @ cross, cross.T @ inverse @ omega @ inverse @ cross
    outer = np.outer(shares, shares)
    D2 = (1.0 + k) ** -2
    R = (np.diag(shares) - outer - 2 * T1 + T2 + (not intercept) * outer) / (1 - D2 / alpha)
    mean = (T1 / shares + intercept * shares[:, None]).T
    between = (T1 / shares) @ np.diag(shares) @ (T1 / shares).T
    return np.trace(R), mean, T2 + R * D2 / alpha - between


def square_compared(seed):
    """Largest difference of what is known exactly, standard errors of the error, and the model."""
    rng = np.random.default_rng(seed)
    teacher, (alpha, lam), intercept = random_classes(rng, alike=False), point(rng), seed % 3 > 0
    ds = predicted(teacher, "square", alpha, lam, intercept=intercept)
    mse, mean, Q = square_anew(teacher, alpha, lam, intercept=intercept)
    off = max(
        abs(float(ds.mean_square_error) / mse - 1.0),
        np.abs(ds.score_mean.values - mean).max(),
        np.abs(ds.score_covariance.values - Q).max() / np.trace(Q),
    )
    values, vectors = np.linalg.eigh(Q)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    error = variance = 0.0
    for c, share in enumerate(teacher.shares):
        f = mean[c] + rng.standard_normal((ROWS // 10, len(Q))) @ root.T
        wrong = float((f.argmax(1) != c).mean())
        error, variance = error + share * wrong, variance + share**2 * wrong / len(f)
    z = (float(ds.generalisation_error) - error) / np.sqrt(variance + 1e-12)
    return off, z, (teacher, alpha, lam)


def proximal(omega, y, v, steps=60):
    """The η that minimises -log softmax(η)_y + |η - ω|²/2v, by damped Newton steps."""
    target, eta = np.eye(omega.shape[1])[y], omega.copy()
    for _ in range(steps):
        s = np.exp(eta - eta.max(1, keepdims=True))
        s /= s.sum(1, keepdims=True)
        gradient = (eta - omega) / v - target + s
        scale = 1.0 / (1.0 / v + s)
        plain = scale * gradient
        # the curvature diag(s) - ss' + 1/v, by Sherman and Morrison
        lift = scale * s
        dot = (s * plain).sum(1) / (1.0 - (s * lift).sum(1))
        step = plain + lift * dot[:, None]
        eta = eta - step / np.maximum(1.0, np.abs(step).max(1, keepdims=True) / 2.0)
    return eta, s


def softmax_anew(teacher, alpha, lam, rng, turns=80):
    """q, m and v of white features by plain iteration on normal samples."""
    K, tau = teacher.number, 0.5 * teacher.separation**2
    z = rng.standard_normal((SAMPLES // K, K))
    y = np.zeros(len(z), dtype=int)
    v, q, m = 1.0 / lam, 1.0, 0.1
    for _ in range(turns):
        omega = np.sqrt(q) * z + m * np.eye(K)[0]
        eta, s = proximal(omega, y, v)
        g = np.eye(K)[0] - s
        H = s[:, :, None] * np.eye(K) - s[:, :, None] * s[:, None]
        curved = np.linalg.solve(np.eye(K) + v * H, H)
        e1 = np.trace(curved, axis1=1, axis2=2).mean() / (K - 1)
        e2, pull = (g**2).sum(1).mean() / (K - 1), g[:, 0].mean() * K / (K - 1)
        r = 1.0 / (1.0 + lam / (alpha * e1))
        a = pull / (K * e1)
        new = r / (alpha * e1), e2 * r**2 / (alpha * e1**2) + tau * a**2 * r**2, tau * a * r
        v, q, m = (0.4 * old + 0.6 * value for old, value in zip((v, q, m), new, strict=True))
    return q, m


def softmax_compared(seed):
    """Relative difference of q and m, in units of the noise of the samples, and the model."""
    rng = np.random.default_rng(seed)
    teacher, (alpha, lam) = random_classes(rng, alike=True), point(rng)
    K = teacher.number
    ds = predicted(teacher, "softmax", alpha, max(lam, 0.1))
    q, m = softmax_anew(teacher, alpha, max(lam, 0.1), rng)
    found = float(ds.Q) / (K - 1), float(ds.M) / (1 - 1 / K)
    noise = 2.0 / np.sqrt(SAMPLES // K) + float(ds.quadrature_error)
    off = max(abs(found[0] / q - 1.0), abs(found[1] / m - 1.0)) / noise
    return off, (teacher, alpha, lam)


def unequal_anew(gram, shares, alpha, lam, *, intercept, nodes=48, turns=300):
    """Covariance and means of the scores of three classes, for white features."""
    K = len(shares)
    centring = np.eye(K) - np.outer(np.ones(K), shares)
    gram, Pi, J = centring @ gram @ centring.T, np.diag(shares), np.eye(K) - 1.0 / K
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    Z, W = np.array(np.meshgrid(x, x)).reshape(2, -1), np.outer(w, w).ravel() / w.sum() ** 2
    Z, W = Z[:, W > 1e-22], W[W > 1e-22]
    V, Q, M, b = J.copy(), J.copy(), 0.1 * J, (np.log(shares) - np.log(shares).mean()) * intercept
    for _ in range(turns):
        values, vectors = np.linalg.eigh(Q)
        root, inverse_V = vectors[:, 1:] * np.sqrt(values[1:]), np.linalg.pinv(V)
        E1, E2, F = np.zeros((K, K)), np.zeros((K, K)), np.zeros((K, K))
        for c in range(K):
            eta, s = proximal_of_matrix((b + M[:, c])[:, None] + root @ Z, c, inverse_V)
            gradient = np.eye(K)[:, [c]] - s
            H = s.T[:, :, None] * np.eye(K) - s.T[:, :, None] * s.T[:, None]
            E1 += shares[c] * np.einsum("n,nij->ij", W, H @ np.linalg.inv(np.eye(K) + V @ H))
            E2 += shares[c] * (gradient * W) @ gradient.T
            F[:, c] = gradient @ W
        e, U = np.linalg.eigh(0.5 * (E1 + E1.T))
        e, U = e[1:], U[:, 1:]
        inverse, k = (U / e) @ U.T, lam / (alpha * e)
        S = U.T @ (inverse @ F + M)
        a = np.array(
            [np.linalg.solve(np.eye(K) + Pi @ gram / (1 + k[j]), Pi @ S[j]) for j in range(K - 1)]
        )
        kept = 1.0 / np.outer(1 + k, 1 + k)
        new = (
            (U / (alpha * e * (1 + k))) @ U.T,
            U @ (kept * (U.T @ E2 @ U / (alpha * np.outer(e, e)) + a @ gram @ a.T)) @ U.T,
            U @ (a @ gram / (1 + k)[:, None]),
            b + inverse @ (F @ shares) * intercept,
        )
        moved = max(np.abs(n - o).max() for n, o in zip(new, (V, Q, M, b), strict=True))
        V, Q, M, b = (o + 0.7 * (n - o) for n, o in zip(new, (V, Q, M, b), strict=True))
        if moved < 1e-11:
            break
    return Q, (b[:, None] + M).T


def proximal_of_matrix(omega, y, inverse_V, steps=200):
    """The η (K, points) that minimises -log softmax(η)_y plus half the square with V⁻¹."""
    K, eta = len(omega), omega.copy()
    for _ in range(steps):
        s = np.exp(eta - eta.max(0))
        s /= s.sum(0)
        slope = inverse_V @ (eta - omega) + s - np.eye(K)[:, [y]]
        H = s.T[:, :, None] * np.eye(K) - s.T[:, :, None] * s.T[:, None]
        step = np.linalg.solve(H + inverse_V + 1.0 / K, slope.T[..., None])[..., 0].T
        step -= step.mean(0)
        eta = eta - step / np.maximum(1.0, np.abs(step).max(0) / 2.0)
        if np.abs(step).max() < 1e-12:
            break
    s = np.exp(eta - eta.max(0))
    return eta, s / s.sum(0)


def unequal_compared(seed):
    """Largest relative difference of covariances and means of three unequal classes."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((3, 3)) * rng.uniform(0.5, 2.0)
    shares, (alpha, lam) = rng.dirichlet(np.full(3, 3.0)) * 0.85 + 0.05, point(rng)
    gram, lam, intercept = means @ means.T, max(lam, 0.08), seed % 3 > 0
    teacher = hm.teachers.Classes(gram=gram, priors=shares)
    ds = predicted(teacher, "softmax", alpha, lam, intercept=intercept)
    Q, mean = unequal_anew(gram, shares, alpha, lam, intercept=intercept)
    off = max(
        np.abs(ds.score_covariance.values - Q).max() / np.trace(Q),
        np.abs(ds.score_mean.values - mean + mean.mean(1, keepdims=True)).max()
        / np.abs(mean).max(),
    )
    return off, (teacher, alpha, lam)


WHITE = {"activation": "identity", "projection": "orthogonal"}
RULES = {
    "K = 3": (hm.teachers.Classes(gram=np.diag([1.5, 6.0, 3.0]), priors=(0.5, 0.3, 0.2)), 240),
    "K = 5": (hm.teachers.Classes(5, 3.0), 250),
    "K = 5, unequal": (
        hm.teachers.Classes(
            gram=np.diag([1.5, 6.0, 3.0, 9.0, 4.5]), priors=(0.1, 0.15, 0.2, 0.25, 0.3)
        ),
        250,
    ),
    "K = 10": (hm.teachers.Classes(10, 3.5), 300),
    "K = 20": (hm.teachers.Classes(20, 4.0), 400),
    "K = 3 fields": (hm.teachers.Argmax(3), 250),
    "K = 5 fields": (hm.teachers.Softmax(5, 0.4), 250),
}
METHODS = {
    "square": {"loss": "square"},
    "softmax": {"loss": "softmax"},
    "one-vs-rest logistic": {"loss": "logistic", "scheme": "one-vs-rest"},
}
MEASURED = ("generalisation_error", "top_error", "training_error", "training_loss", "Q", "M", "q_w")


def fits_compared(seeds):
    """z-scores of all models and methods, by quantity."""
    scores = {name: [] for name in MEASURED}
    for (rule, (teacher, p)), (method, parts) in itertools.product(RULES.items(), METHODS.items()):
        fields = "fields" in rule
        if fields and "scheme" in parts:
            continue
        model = hm.Model(**WHITE, **parts, teacher=teacher, intercept=True)
        ds = hm.compare(
            model,
            n=2 * p,
            p=p,
            d=p,
            regularisation=0.3,
            seeds=seeds,
            n_test=3000,
            workers=1,
            finite_size=not fields,
        )
        z = {name: ds[f"{name}_z"].values.ravel() for name in MEASURED}
        error, theory = float(ds.generalisation_error), float(ds.generalisation_error_theory)
        shown = ", ".join(f"{name} {values[0]:.1f}" for name, values in z.items())
        print(f"{rule}, {method}: error {error:.4f}, theory {theory:.4f}; z: {shown}", flush=True)
        for name, values in z.items():
            scores[name].append(values[0])
    for name, values in scores.items():
        rms, worst = np.sqrt(np.mean(np.square(values))), np.abs(values).max()
        print(f"{name}: {len(values)} models, rms z {rms:.2f}, worst {worst:.1f}")


def main(square=200, softmax=10, unequal=20, fits=16):
    exact, z = [], []
    for seed in range(square):
        off, deviation, model = square_compared(seed)
        exact.append(off)
        z.append(deviation)
        if off > 1e-7 or abs(deviation) > FAR:
            print(f"square, {off:.1e}, z = {deviation:.1f}: {model}")
    print(f"square: {square} models, worst {max(exact):.1e}; error: rms z {np.std(z):.2f}")
    offs = []
    for seed in range(softmax):
        off, model = softmax_compared(seed)
        offs.append(off)
        if off > 1.0:
            print(f"softmax, off by {off:.2f} of the noise: {model}")
    print(f"softmax: {softmax} models, worst {max(offs):.2f} of the noise of the samples")
    worst = 0.0
    for seed in range(unequal):
        off, model = unequal_compared(seed)
        worst = max(worst, off)
        if off > 1e-7:
            print(f"softmax of unequal classes, {off:.1e}: {model}")
    print(f"softmax of unequal classes: {unequal} models, worst {worst:.1e}")
    fits_compared(fits)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
