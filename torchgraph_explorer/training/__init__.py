"""What runs in the process that trains. It joins capture, reduction, the record and the other sinks.

Which thread may call what:

=============================  ========================================================================================
Thread                         May call
=============================  ========================================================================================
The training's: those that     `capture` and `reduce`, under the lock of the model's `StepTracker`. A step that is over
call the model or run its      is put into the writer's queue. No store and no network is touched here; `watch` and
backward pass                  `Watcher.close` wait for other threads to do so, for a stated time.
The writer's, one for each     The sinks (`write`, `when_idle`, `close`), and through them `record`, stores and
`Pipeline`: `writer_thread`    services; and the function that `reduce` returned with a step, which waits for the
                               device. Of `capture`, only `PendingFacts`, which works facts out of the numbers of a
                               step that is over: whatever else a sink needs to know of a step is a plain value.
The idle timer's, one for      `StepTracker.settle`, which hands over a step after which nothing comes: the end of its
each `Pipeline`: `idle_timer`  capture, under the step's lock, if that is free. No sink, no store; no warning is shown
                               while the lock is held.
Those of `timeouts.in_time`    What may hang: making the run's folder, starting the viewer, looking for earlier steps.
and of `first_step`            They use neither `capture` nor `reduce`.
=============================  ========================================================================================

`Watcher.end`, and what it calls of `capture`, may run in any thread: a finalizer runs where garbage is collected, a
signal handler where Python happens to be. It waits for no thread of ours.

`tests/training/test_threads.py` keeps this.

Used through the public names of `torchgraph_explorer`.
"""
