"""Power laws of a population are continued below the scales that a sample resolves."""

import numpy as np
import pytest

from hiddenmanifold.data import spectrum

RESOLVED = 1e-2
SEEN = np.geomspace(RESOLVED, 10.0, 60)
BELOW = RESOLVED * np.array([0.5, 0.1, 0.01])
"""Values of κ that the sample shows, and others that it does not."""
ATOMS = np.geomspace(RESOLVED, 30.0, spectrum.ATOMS)
TAIL = RESOLVED * np.geomspace(10.0**-spectrum.TAIL, 1.0, 8 * spectrum.TAIL, endpoint=False)
EVERYWHERE = np.append(TAIL, ATOMS)
FINE = np.geomspace(TAIL[0], 10.0, 4000)


def lost(w, kappa):
    return kappa[:, None] / (w + kappa[:, None])


@pytest.mark.parametrize("decay", spectrum.DECAYS[::3])
def test_energies_of_a_power_law(decay):
    energy = FINE**decay / np.sum(FINE**decay)
    variance = 1.0 / 0.98  # of which two per cent are hidden

    def bias(kappa):
        return variance - 1.0 + lost(FINE, kappa) ** 2 @ energy

    weight = 1.0 / bias(SEEN)
    found = spectrum._energies(SEEN, bias(SEEN), weight, (ATOMS, TAIL), variance)
    hidden = variance - found.sum()
    expected, continued = bias(BELOW), hidden + lost(EVERYWHERE, BELOW) ** 2 @ found
    np.testing.assert_allclose(continued, expected, rtol=0.03)


@pytest.mark.parametrize("slope", spectrum.SLOPES[::4])
def test_directions_of_a_power_law(slope):
    number = 3.0 * FINE**-slope / np.sum(FINE > RESOLVED)

    def degrees(kappa):
        return (1.0 - lost(FINE, kappa)) @ number

    found = spectrum._directions(SEEN, degrees(SEEN), ATOMS, TAIL, 10**9)
    continued = (1.0 - lost(EVERYWHERE, BELOW)) @ found
    np.testing.assert_allclose(continued, degrees(BELOW), rtol=0.05)
    fewer = spectrum._directions(SEEN, degrees(SEEN), ATOMS, TAIL, 7)
    assert fewer.sum() == pytest.approx(7.0, rel=1e-12)
