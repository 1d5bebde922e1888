"""Run jobs in parallel, and show their progress.

A job is a frozen value with a method ``run()`` and nothing outside it that its result depends on.
The package cuts every computation into the same jobs whatever the machine, so that the results are
equal to the bit whether one worker runs them or a hundred.

Read `workers` first. Its class `Workers` runs a list of jobs in one of four places:

- in the calling thread, if there is one job or one worker;
- in threads of this process. Compiled code and NumPy release the interpreter's lock for most of a
  job, threads start within a millisecond, share memory, and work everywhere: in a notebook, in a
  server, in a daemonic process, in a script without a main guard, on every operating system;
- in processes of this machine, once there are seconds of work left for them (`processes`). Workers
  that hold the interpreter's lock do not wait for each other there, and a process, unlike a thread,
  can be ended while it computes;
- on an executor that the user passes, such as a cluster of Dask.

`processes` starts processes, keeps them for the next call and ends them: at a Ctrl-C, at a
deadline, or when nobody waits for their result any longer. `progress` shows how many jobs are done
and how long the others will take, in a terminal or in a notebook.
"""
