"""
How many samples for a target error?
====================================

At a fixed small λ more samples can increase the error. `samples_needed` returns the number from
which on the error stays below the target. With the optimal λ for each size fewer samples suffice.
"""

import numpy as np

import hiddenmanifold as hm

model = hm.Model(activation="erf", projection="gaussian", teacher="sign", loss="square")
target = {"p": 300, "d": 100, "target_error": 0.2}

for lam in ("optimal", 1e-4):
    need = hm.samples_needed(model, **target, regularisation=lam)
    print(f"λ = {lam}: n = {float(need.n_over_d) * 100:.0f} samples")

# %%
# At λ = 1e-4 the error peaks at n = p = 300.
sizes = np.arange(20, 1000, 20)
curve = hm.predict(model, n=sizes, p=300, d=100, regularisation=[1e-4, 1.0])
figure = hm.plot(curve, x="n", y="generalisation_error")
figure.axes[0].axhline(0.2, color="grey", linestyle=":")
figure
