"""Real data: what a sample shows of its population, and what more of it would bring."""
