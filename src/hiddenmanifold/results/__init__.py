"""The labelled datasets that answer a question: names, meanings, provenance.

- `schema`: the kinds of datasets, and the name, meaning and role of every variable, in one table;
- `datasets`: how columns become an xarray dataset whose every variable says what it is, and
  `summary`, means and standard errors over seeds;
- `observables`: what can be predicted and measured beside the errors, each by a
  function of ``theory`` and one of ``simulation``.
"""
