"""What only the live training knows of a logged step, such as which gradients were left from before the last update.

`step_facts.StepFactsRecorder` is told what happens in a step, and the other files each find out one thing.

Used within `capture`.
"""
