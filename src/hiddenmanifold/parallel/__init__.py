"""Who runs jobs, and how far they are.

A job is a value with a method ``run()``; `workers` runs jobs one after another, in processes, or
on an executor that the user gives, with results that do not depend on which. `progress` shows how
many are done.
"""
