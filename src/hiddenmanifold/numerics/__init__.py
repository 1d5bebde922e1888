"""Mathematics that knows no physics: quadrature on panels, batched Newton, stable functions."""
