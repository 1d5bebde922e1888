"""Property tests are reproducible and have no deadline: machines are noisy."""

from hypothesis import settings

settings.register_profile("hiddenmanifold", deadline=None, derandomize=True)
settings.load_profile("hiddenmanifold")
