"""The limit n, p, d → ∞: saddle-point equations and the quantities that follow from them."""
