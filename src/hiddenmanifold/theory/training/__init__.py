r"""Training time of the square loss: every gradient method is a sum of ridge fits at complex λ.

- `rules`: the λ and coefficients whose ridge fits add up to gradient flow, or to some steps;
- `ridge_sums`: their sums over the features' directions, hence errors and overlaps;
- `largest_eigenvalue`: the edge of the spectrum of the training samples, which limits a step;
- `trajectory`: everything that is predicted of a model along training, limits included;
- `one_pass`: steps along the gradients of single samples, each of which is used once;
- `stopping`: the time of least error.

Section "Training time" of ``docs/theory.md`` has the equations.
"""
