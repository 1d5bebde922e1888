"""Values that other papers' formulas give, held against predictions.

Every module is one paper: what it is, which of its equations are used, how its parameters become
ours, and these equations written out with NumPy and SciPy alone. `pytest -v tests/other_papers`
ends with the number of values of each paper and the worst relative deviation.
"""

from collections import defaultdict

import numpy as np
import pytest

TITLE = "values of other papers"


@pytest.fixture
def agree(record_property):
    """Require predictions to be the values of a paper, to a relative tolerance."""

    def check(predicted, reference, rtol=1e-10):
        predicted, reference = np.broadcast_arrays(np.asarray(predicted), np.asarray(reference))
        worst = float(np.max(np.abs(predicted / reference - 1.0)))
        record_property(TITLE, (reference.size, worst))
        np.testing.assert_allclose(predicted, reference, rtol=rtol)

    return check


def pytest_terminal_summary(terminalreporter):
    """With -v: how many values of each paper were checked, and the worst deviation."""
    if terminalreporter.verbosity < 1:
        return
    papers = defaultdict(list)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            found = [value for name, value in report.user_properties if name == TITLE]
            papers[report.nodeid.split("::")[0]] += found
    if not any(papers.values()):
        return
    terminalreporter.section(TITLE)
    for paper, found in papers.items():
        if found:
            sizes, deviations = zip(*found, strict=True)
            terminalreporter.line(f"{paper}: {sum(sizes)} values, worst {max(deviations):.1e}")
