"""P3: with any one function of ours broken, training goes on as if unwatched, and it is said once."""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import json
import pkgutil
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from unittest import mock

import torchgraph_explorer.capture
import torchgraph_explorer.reduce
from tests.compatibility.case import Case, Training
from tests.compatibility.training import run
from tests.compatibility.undisturbed import assert_undisturbed
from tests.shared import once
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.training.process import this_process


class Injected(RuntimeError):
    """What a broken function raises."""


@dataclass(frozen=True)
class Fault:
    """One function that raises.

    Attributes:
        name: Where it is: `torchgraph_explorer.capture.captured_step.CapturedStep._enter`.
        after: How many calls of it go well before.
    """

    name: str
    after: int = 0

    def __str__(self) -> str:
        return self.name.removeprefix("torchgraph_explorer.") + (f" from call {self.after}" if self.after else "")


@dataclass
class Switch:
    """Whether a fault acts, and how often its function was called since it does."""

    on: bool = False
    calls: int = 0


NOT_BROKEN = {
    "capture.safe_hook.": "the guard around all hooks: it is what catches the rest",
    "capture.module_hooks._Enter.__call__": "the same",
    "capture.module_hooks._Leave.__call__": "the same",
    "capture.gradient_hooks.GradientHook.__call__": "the same",
    "capture.no_dispatch.NoDispatch.": "gives torch its own state back: broken, nothing else could",
    "capture.mode_stack.": "the same",
    "capture.eager.": "the same",
    "capture.compile_listeners.": "the same",
    "capture.path_gradients.make_stale": "the same",
    "capture.scripting.": "broken, torch.jit.script refuses the model; tests/capture/test_scripting.py breaks it",
    "capture.inline.compilations.CompilationLimit.": "asked by torch, in the middle of the user's compilation",
    "capture.inline.probes._Before.__call__": "the guard around what is compiled into the model",
    "capture.inline.probes._After.__call__": "the same",
    "capture.inline.probes._not_inserted": "how it says what it caught",
    "capture.trace.Trace.__torch_dispatch__": "runs the user's operation; what it does besides is broken instead",
    "capture.trace._dispatch": "the same, of torch.cond and the like, before torch 2.11",
    "capture.trace.Trace.is_infra_mode": "asked by torch, in the middle of what the user does",
    "training.writer_thread.WriterThread.note": "how a fault is said: broken, nobody can be told",
    "training.writer_thread.WriterThread._warn": "the same",
    "training.pipeline.Pipeline.fail": "the same",
    "training.pipeline.Pipeline.note": "the same",
    "training.pipeline.Pipeline._each": "the guard around the end of it all",
    "training.pipeline.Pipeline.end": "the same",
    "training.pipeline.Pipeline.wait": "the same",
    "training.watcher.Watcher.close": "called by the user, as the rest are; all that it calls is broken instead",
    "training.watcher.Watcher.finish": "the same",
    "training.watcher.Watcher._is_put_off": "the same: `close`, `finish` and `end` begin with it",
    "training.watcher.Watcher.__enter__": "the same",
    "training.watcher.Watcher.__exit__": "the same",
}
"""Names, or beginnings of names, of what is left whole, and why."""


BY_WATCH = "watch() calls it, before training begins"
ON_REQUEST = "the user calls it"
IN_BACKWARD = "called where a backward pass calls the whole model; test_watch has such a model, and SafeHook guards it"
ON_A_GPU = "tests/reduce/test_device_batch.py calls it; no case trains on a GPU"

WITH_KEEP = "tests/tensors/test_faults.py breaks it: no case keeps tensors"
AT_A_PAUSE = "called where training pauses for half a second"
BY_AN_INTERRUPT = "tests/capture/test_interrupts.py calls it: an interrupt comes while the model is called"
BY_TESTS = "tests call it"
ONCE = "called once in a process"
NO_FINITE_C = "called where finite.c is not built; tests/training/test_bad_values.py does without it"
WITHOUT_C = "called where the C part is not built or does not take a tensor, and where the memory of a step is full"
OF_CONVERTED = "called for complex numbers, and floats of 8 bits"
ON_IMPORT = "called when the package is imported"
IN_FORWARD = "tests/findings/test_left_out.py calls it: no case makes a layer in its forward pass"
OF_KERAS = "tests/capture/test_keras_layers.py breaks it: no case is a model of Keras"

NOT_CALLED = {
    "capture.call_context._is_within_pipelines_search": "tests/capture/test_pipeline_stages.py calls it",
    "capture.phases.Evaluation.pass_over": "called where passes in eval mode were updates",
    "capture.facts.directions.Directions._hook": "tests/findings/test_made_wrong.py: no case has enough samples",
    "capture.parameters.Parameters.settle": "tests/capture/test_updates_within.py: no case updates within forward",
    "capture.resumed_steps._replaces": "tests/capture/test_resumed_steps.py calls it: no case replaces an optimizer",
    "capture.step_admission.StepAdmission._why_passes_count": "tests/capture/test_updates.py: no case waits in vain",
    "capture.silence.Silence.is_before_training": "called where a model is watched again before its first step",
    "training.watcher.Watcher.explore": ON_REQUEST,
    "capture.attach_targets.AttachTargets.__init__": ON_IMPORT,
    "capture.attach_targets.AttachTargets.clear": BY_TESTS,
    "capture.optimizer_steps.OptimizerSteps.clear": BY_TESTS,
    "capture.backward_passes.BackwardPasses.are_on": AT_A_PAUSE,
    "capture.call_stack.is_running": AT_A_PAUSE,
    "capture.call_stack._is_running_elsewhere": AT_A_PAUSE,
    "capture.call_stack._is_running_in_c": AT_A_PAUSE,
    "capture.captured_step.CapturedStep._patience": AT_A_PAUSE,
    "capture.captured_step.CapturedStep.awaits_backward": AT_A_PAUSE,
    "capture.captured_step.CapturedStep.close": AT_A_PAUSE,
    "capture.captured_step.CapturedStep.give_up": BY_AN_INTERRUPT,
    "capture.captured_step.CapturedStep.have_gradients": "called after a hundred passes without an update",
    "capture.captured_step.CapturedStep.is_updated": AT_A_PAUSE,
    "capture.captured_step.CapturedStep.is_done_by": BY_AN_INTERRUPT,
    "capture.captured_step.CapturedStep.is_idle": AT_A_PAUSE,
    "capture.compiled_calls.CompiledCalls.__init__": BY_WATCH,
    "capture.compiled_calls.CompiledCalls.leave_abandoned": AT_A_PAUSE,
    "capture.compiled_calls.CompiledCalls.end_call": BY_AN_INTERRUPT,
    "capture.compiled_entry.CompiledEntries.__init__": BY_WATCH,
    "capture.compiled_entry.CompiledEntries._fail_at_registration": "called where a new hook cannot be looked at",
    "capture.compiled_entry.CompiledEntries._hook": BY_WATCH,
    "capture.compiled_entry.CompiledEntries._on_compile": "called where the model is compiled after the first step",
    "capture.compiled_entry.CompiledEntries._put_before": BY_WATCH,
    "capture.compiled_entry.CompiledEntries._put_in_place": BY_WATCH,
    "capture.compiled_entry.CompiledEntries._runs_model": BY_WATCH,
    "capture.compiled_entry._compiled_modules": BY_WATCH,
    "capture.compiled_entry.switch_off_abandoned": AT_A_PAUSE,
    "capture.current_step.CurrentStep.__init__": BY_WATCH,
    "capture.current_step.CurrentStep.give_up": BY_AN_INTERRUPT,
    "capture.current_step.CurrentStep.graphs": ON_REQUEST,
    "capture.current_step.CurrentStep.interrupted": BY_AN_INTERRUPT,
    "capture.current_step.CurrentStep.leave_abandoned": AT_A_PAUSE,
    "capture.current_step.CurrentStep.settle": AT_A_PAUSE,
    "capture.direct_forwards._caller_of": "called where a module is run by its forward",
    "capture.direct_forwards._name_of": "called where a module is run by its forward",
    "capture.direct_forwards._self_of": "called where a module is run by its forward",
    "capture.distributed": "test_distributed.py calls it; no case has several ranks",
    "capture.entrances.Entrances.__init__": BY_WATCH,
    "capture.entrances.Entrances.end_forward": "does nothing",
    "capture.entrances.Entrances.leave": "does nothing",
    "capture.facts.late.HeldGradient.__init__": BY_WATCH,
    "capture.facts.leftover.UpdateWitnesses.__init__": BY_WATCH,
    "capture.facts.answers._off_ahead": "called where numbers are asked for at each place of a sequence",
    "capture.facts.directions.Directions._take": "called where an output has 8 samples of 8 features or more",
    "capture.facts.directions._directions": "called where an output has 8 samples of 8 features or more",
    "capture.facts.made.MadeParameters.note": IN_FORWARD,
    "capture.facts.made._is_as_made": IN_FORWARD,
    "capture.facts.unregistered.ids_kept_by": IN_FORWARD,
    "capture.facts.operations.Operations._note_clamp": "called where a function clamps between modules",
    "capture.uncompiled.uncompiled": BY_WATCH,
    "capture.facts.operations.Operations._note_shift": "called where tensors are joined or padded between modules",
    "capture.facts.operations.is_start_of_table": "called where rows of a table are added along the samples",
    "capture.facts.units.UnitWindows.__init__": BY_WATCH,
    "capture.finite_checks.FiniteChecks.__init__": BY_WATCH,
    "capture.finite_checks._Pace.__init__": BY_WATCH,
    "capture.nonfinite_origin": "tests/training/test_bad_values.py calls it: no case has NaN",
    "capture.finite_checks.FiniteChecks._look_by_torch": NO_FINITE_C,
    "capture.finite_checks.FiniteChecks._judge": "called where something is not finite, and " + NO_FINITE_C,
    "capture.finite_checks._origin_of": "called at the end, of an output that was not looked at and is not finite",
    "capture.finite_checks._is_bad": NO_FINITE_C,
    "capture.finite_checks._largest": NO_FINITE_C,
    "capture.finite_checks._Late": "reads a number from a GPU; no case trains on one",
    "capture.forward_modes.ForwardModes._leave_if_left": BY_AN_INTERRUPT,
    "capture.forward_modes.ForwardModes.leave_later": BY_AN_INTERRUPT,
    "capture.forward_modes._is_torch_at_work": BY_AN_INTERRUPT,
    "capture.forward_passes.ForwardPasses.all_may_have_backward": AT_A_PAUSE,
    "capture.forward_passes.ForwardPasses.are_first": "called after 64 passes that are not recorded",
    "capture.forward_recorder.ForwardRecorder.abandon": BY_AN_INTERRUPT,
    "capture.forward_recorder.ForwardRecorder.give_up": BY_AN_INTERRUPT,
    "capture.forward_recorder.ForwardRecorder.is_traced": ON_REQUEST,
    "capture.forward_recorder.ForwardRecorder.leave_abandoned": AT_A_PAUSE,
    "capture.forward_recorder.ForwardRecorder.may_have_backward": AT_A_PAUSE,
    "capture.forward_recorder.ForwardRecorder._may_be_entrance": "called after 68 passes of a step, in test_updates.py",
    "capture.gradient_hooks._do_nothing": "does nothing",
    "capture.inline.capture.InlineCapture.__init__": BY_WATCH,
    "capture.inline.probes.InlineProbes.__init__": BY_WATCH,
    "capture.recursion_room.RecursionRoom.__init__": ON_IMPORT,
    "capture.recursion_room.RecursionRoom.hold": BY_WATCH,
    "capture.recursion_room.RecursionRoom.release_all": BY_TESTS,
    "capture.inline.probes._Insertion": "run by dynamo, which traces through it",
    "capture.inline.registry.OpenWindow.__init__": ON_IMPORT,
    "capture.inline.registry.OpenWindow.release_all": BY_TESTS,
    "capture.inline.probes._Hook.__init__": BY_WATCH,
    "capture.optimizer_turns.OptimizerTurns.__init__": BY_WATCH,
    "capture.inline.probes._operator": ONCE,
    "capture.inline.probes.why_not_inline": BY_WATCH,
    "capture.inline.step.InlineForward.abandon": "does nothing",
    "capture.inline.step.InlineForward.attach": "does nothing",
    "capture.inline.step.InlineForward.begin": "does nothing",
    "capture.inline.step.InlineForward.conclude": "does nothing",
    "capture.inline.step.InlineForward.finish": "does nothing",
    "capture.inline.step.InlineForward.give_up": "does nothing",
    "capture.inline.step.InlineForward.leave_abandoned": "does nothing",
    "capture.inline.step.InlineForward.may_have_backward": AT_A_PAUSE,
    "capture.inline.step.InlineForward.remove_hooks": "does nothing",
    "capture.known_graphs.KnownGraphs.__init__": BY_WATCH,
    "capture.known_graphs.KnownGraphs.with_current": ON_REQUEST,
    "capture.module_hooks.ModuleHooks.__init__": BY_WATCH,
    "capture.optimizer_steps.ModelOptimizers.__init__": BY_WATCH,
    "capture.optimizer_steps.ParameterWrites.__init__": BY_WATCH,
    "capture.optimizer_steps.OptimizerSteps.__init__": ON_IMPORT,
    "capture.optimizer_steps.OptimizerSteps.add": BY_WATCH,
    "capture.optimizer_steps.OptimizerSteps.are_watched": "called where another model is trained first",
    "capture.optimizer_steps.ModelOptimizers.has": "called where another model is trained first",
    "capture.step_tracker.StepTracker.has": "called where another model is trained first",
    "capture.parameters.Parameters.forget": AT_A_PAUSE,
    "capture.path_gradients.is_stale": WITH_KEEP,
    "capture.phases.Evaluation.__init__": BY_WATCH,
    "capture.phases.Evaluation.take_eval_mode": "called for no phase but training",
    "capture.phases.Training.__init__": BY_WATCH,
    "capture.phases.Training.set": ON_REQUEST,
    "capture.phases.Training.is_within": ON_REQUEST,
    "capture.phases.Evaluation.is_within": ON_REQUEST,
    "capture.phases.Evaluation.named_ahead": ON_REQUEST,
    "capture.phases.Training.take_eval_mode": "called where a model is trained in eval mode",
    "capture.step_counter.StepCounter.take_eval_mode": "called where a model is trained in eval mode",
    "capture.process_state.ProcessState.__init__": ON_IMPORT,
    "capture.process_state.ProcessState.reset": "tests call it",
    "capture.resumed_steps.ResumedSteps.__init__": BY_WATCH,
    "capture.keras_layers._children": OF_KERAS,
    "capture.keras_layers._joined": OF_KERAS,
    "capture.keras_layers._parameters": OF_KERAS,
    "capture.keras_layers._walk": OF_KERAS,
    "capture.keras_layers._within": OF_KERAS,
    "capture.keras_layers.is_layer": OF_KERAS,
    "capture.keras_layers.named_layers": OF_KERAS,
    "capture.modules_by_name._ByIdentity": "called where a module has its own `named_modules`",
    "capture.modules_by_name._with_layers": OF_KERAS,
    "capture.native_calls.makers": ONCE,
    "capture.path_gradients.can_make_stale": ONCE,
    "capture.native_calls._functions": WITH_KEEP,
    "capture.native_calls._keep": WITH_KEEP,
    "capture.native_calls._take": WITH_KEEP,
    "capture.recorded_calls.RecordedCalls._measure_parameters": WITHOUT_C,
    "capture.recorded_calls.RecordedCalls._observe_one": WITHOUT_C,
    "capture.recorded_calls.RecordedCalls._is_kept": "called where gradients are not measured, or with keep=",
    "capture.sampled_updates._SamplesInTorch": WITHOUT_C,
    "capture.sampled_updates.SampledUpdates._in_torch": WITHOUT_C,
    "capture.sampled_updates._sample": WITHOUT_C,
    "capture.sampled_updates._ratios": WITHOUT_C,
    "capture.call_context.is_in_backward": IN_BACKWARD,
    "capture.silence.Silence.__init__": BY_WATCH,
    "capture.silence.Silence.call_in_backward": IN_BACKWARD,
    "capture.silence.Silence.duration": "called where no step was recorded",
    "capture.silence.Silence.is_due": AT_A_PAUSE,
    "capture.silence.Silence.look": BY_WATCH,
    "capture.silence.Silence.reason": "called where no step was recorded",
    "capture.skipped_updates.SkippedUpdates.__init__": BY_WATCH,
    "capture.step_admission.StepAdmission.__init__": BY_WATCH,
    "capture.step_admission.StepAdmission.is_recording": ON_REQUEST,
    "capture.step_admission.StepAdmission.mark": ON_REQUEST,
    "capture.step_counter.StepCounter.__init__": BY_WATCH,
    "capture.step_counter.StepCounter.mark": ON_REQUEST,
    "capture.step_tracker.StepTracker.__init__": BY_WATCH,
    "capture.step_tracker.StepTracker._note_silence": AT_A_PAUSE,
    "capture.step_counter.StepCounter.current": ON_REQUEST,
    "capture.step_counter.StepCounter.look_back": ON_REQUEST,
    "capture.look_again.LookAgain.__init__": BY_WATCH,
    "capture.look_again.LookAgain": ON_REQUEST,
    "capture.step_tracker.StepTracker.current_step": ON_REQUEST,
    "capture.step_tracker.StepTracker.is_recording": ON_REQUEST,
    "capture.step_tracker.StepTracker.look_back": ON_REQUEST,
    "capture.step_tracker.StepTracker.graphs": ON_REQUEST,
    "capture.step_tracker.StepTracker.interrupted": BY_AN_INTERRUPT,
    "capture.step_tracker.StepTracker.mark_step": ON_REQUEST,
    "capture.step_tracker.StepTracker.settle": AT_A_PAUSE,
    "capture.trace._do_nothing": "does nothing",
    "capture.trace.Trace._should_skip_dynamo": "asked by torch, where a traced model is compiled",
    "reduce.cuda_driver": ON_A_GPU,
    "reduce.device_batch.DeviceBatch.__init__": BY_WATCH,
    "reduce.device_batch.DeviceBatch._buffers": ON_A_GPU,
    "reduce.device_batch.DeviceBatch._noted": ON_A_GPU,
    "reduce.device_batch.DeviceBatch._rows": ON_A_GPU,
    "reduce.device_batch.DeviceBatch.add": ON_A_GPU,
    "reduce.device_batch.DeviceBatch.finish": ON_A_GPU,
    "reduce.device_batch._": ON_A_GPU,
    "reduce.gpu_rows.GpuRows.__init__": BY_WATCH,
    "reduce.gpu_rows.GpuRows._grow": BY_WATCH,
    "reduce.gpu_rows.GpuRows.add_elsewhere": ON_A_GPU,
    "reduce.gpu_rows.GpuRows.take": ON_A_GPU,
    "reduce.gpu_rows.kernels": ON_A_GPU,
    "reduce.to_host.ToHost.": ON_A_GPU,
    "reduce.to_host.current_stream": ON_A_GPU,
    "reduce.to_host._": ON_A_GPU,
    "reduce.row_buffer.RowBuffer.add_left": ON_A_GPU,
    "reduce.row_buffer._add_left": ON_A_GPU,
    "reduce.row_buffer.RowBuffer.add_sample": ON_A_GPU,
    "reduce.row_buffer.RowBuffer.add_elements": WITHOUT_C,
    "reduce.row_buffer._Memory.put_fingerprint": OF_CONVERTED,
    "reduce.row_buffer._fingerprint": ONCE,
    "reduce.row_buffer.fingerprint": OF_CONVERTED,
    "reduce.row_buffer.of_sample": ON_A_GPU,
    "reduce.kept": WITH_KEEP,
    "reduce.neurons": WITH_KEEP,
    "reduce.room": WITH_KEEP,
    "reduce.sampling.is_contiguous_plain": "asks plain_elements, which is broken in its place; for kept tensors only",
    "reduce.row_buffer._parallel": ONCE,
    "reduce.row_buffer.use_threads": ONCE,
    "reduce.row_buffer.functions": ONCE,
    "reduce.finite.is_finite": ONCE,
    "reduce.row_buffer.exchange": ONCE,
    "reduce.row_buffer.RowBuffer.add_numbers": WITHOUT_C,
    "reduce.row_buffer.RowBuffer.is_full": WITHOUT_C,
    "reduce.row_buffer.RowBuffer.make_room": WITHOUT_C,
    "reduce.row_buffer.tensor_functions": ONCE,
    "reduce.row_buffer.library": ONCE,
    "reduce.sampling.Sampler.__init__": BY_WATCH,
    "training.idle_timer.IdleTimer.__init__": BY_WATCH,
    "training.idle_timer.IdleTimer._run": "begins before training does",
    "training.pipeline.Pipeline.__init__": BY_WATCH,
    "training.pipeline._origin_in_words": "tests/training/test_bad_values.py calls it",
    "training.pipeline.Pipeline._fail_to_settle": AT_A_PAUSE,
    "training.pipeline.Pipeline._keep_no_more": WITH_KEEP,
    "training.pipeline.Pipeline._settle": AT_A_PAUSE,
    "training.pipeline.Pipeline.log": ON_REQUEST,
    "training.pipeline.Pipeline.has_begun": BY_WATCH,
    "training.pipeline.kept_steps": BY_WATCH,
    "training.watcher.Watcher.__init__": BY_WATCH,
    "training.watcher.Watcher._evaluation": BY_WATCH,
    "training.watcher.Watcher._recorded": ON_REQUEST,
    "training.watcher.Watcher._repr_html_": ON_REQUEST,
    "training.watcher.Watcher.begin": BY_WATCH,
    "training.watcher.Watcher.export": ON_REQUEST,
    "training.watcher.Watcher.graph": ON_REQUEST,
    "training.watcher.Watcher.has_begun": BY_WATCH,
    "training.watcher.Watcher.end": "called at exit; all that it calls is broken instead",
    "training.watcher.Watcher.has_steps": "called at exit",
    "training.watcher.Watcher._records": ON_REQUEST,
    "training.watcher.Watcher.log": ON_REQUEST,
    "training.watcher.Watcher.note": ON_REQUEST,
    "training.watcher.Watcher.structure": ON_REQUEST,
    "training.watcher.Watcher.watches": BY_WATCH,
    "training.watcher._is_step": ON_REQUEST,
    "training.watcher.calling_first": BY_WATCH,
    "training.watcher.sinks_before_step": BY_WATCH,
    "training.writer_thread.WriterThread.__init__": BY_WATCH,
    "training.writer_thread.WriterThread._idle": AT_A_PAUSE,
    "training.writer_thread.WriterThread._run": "begins before training does",
    "training.writer_thread.WriterThread._used_by_kept": WITH_KEEP,
    "training.writer_thread.WriterThread._write_kept": WITH_KEEP,
    "training.writer_thread.WriterThread.has_begun": BY_WATCH,
    "capture.attach_targets.AttachTargets.loops": ON_REQUEST,
    "capture.attach_targets.AttachTargets.watch_loop": BY_WATCH,
    "capture.captured_step.CapturedStep.attach_in_loop": ON_REQUEST,
    "capture.captured_step.CapturedStep.connect": ON_REQUEST,
    "capture.captured_step.CapturedStep.name_in_loop": ON_REQUEST,
    "capture.captured_step.keep_in_loop": ON_REQUEST,
    "capture.module_selection.ModuleSelection.chosen": "tests/training/test_module_selection.py calls it, with only=",
    "capture.module_selection.ModuleSelection.idle": BY_WATCH,
    "capture.module_selection._": "called by these two",
    "capture.by_tensor.ByStorage.clear": WITH_KEEP,
    "capture.by_tensor.ByTensor.__contains__": WITH_KEEP,
    "capture.by_tensor.ByTensor.__delitem__": WITH_KEEP,
    "capture.by_tensor.ByTensor.clear": WITH_KEEP,
    "capture.named_tensors.NamedTensors": WITH_KEEP,
    "capture.named_tensors._edge_key": WITH_KEEP,
    "capture.recorded_calls.named_tensors": WITH_KEEP,
    "capture.step_admission.StepAdmission.is_within": ON_REQUEST,
    "capture.step_admission.StepAdmission.wants_next": ON_REQUEST,
    "capture.step_counter.StepCounter.has_begun_none": ON_REQUEST,
    "capture.step_counter.StepCounter.may_count_passes": ON_REQUEST,
    "capture.step_tracker.StepTracker._name_ahead": ON_REQUEST,
    "capture.step_tracker.StepTracker.attach_in_loop": ON_REQUEST,
    "capture.step_tracker.StepTracker.connect": ON_REQUEST,
    "capture.step_tracker.StepTracker.is_within": ON_REQUEST,
    "capture.step_tracker.StepTracker.upcoming": ON_REQUEST,
    "training.pipeline.Pipeline._discard": "called where a label has a schedule of its own",
    "training.pipeline.Pipeline._told_of": ON_REQUEST,
    "training.pipeline.Pipeline.connect": ON_REQUEST,
    "training.pipeline.Pipeline.flag": ON_REQUEST,
    "training.pipeline.Pipeline.finite_reader": BY_WATCH,
    "training.pipeline.Pipeline.not_finite": "tests/training/test_bad_values.py calls it: no case has NaN",
    "training.pipeline.Pipeline.gradients": ON_REQUEST,
    "training.pipeline.Pipeline.is_flagged": ON_REQUEST,
    "training.pipeline.Pipeline.keeper_ahead": ON_REQUEST,
    "training.pipeline.Pipeline.label": ON_REQUEST,
    "training.pipeline.Pipeline.samples": ON_REQUEST,
    "training.watcher.Watcher._guarded": ON_REQUEST,
    "training.watcher.Watcher._tell": ON_REQUEST,
    "training.watcher.Watcher.flag_exception": ON_REQUEST,
    "training.watcher.Watcher.flag_findings": "called with what is found",
    "training.writer_thread.WriterThread._ask_if_nonfinite": WITH_KEEP,
    "training.writer_thread.WriterThread.ask": ON_REQUEST,
}
"""Names, or beginnings of names, of what no case calls for sure while it trains, and why."""

HANDLERS = {
    "capture.inline.step.InlineForward.drop": ("capture.inline.step.InlineForward._take_value", 0),
    "capture.forward_recorder.ForwardRecorder.end_forward": ("capture.forward_recorder.ForwardRecorder.is_ours", 0),
    "capture.forward_recorder.ForwardRecorder.drop": ("capture.forward_recorder.ForwardRecorder.enter", 3),
    "capture.captured_step.CapturedStep._drop": ("capture.gradient_hooks.GradientHook.act", 0),
    "capture.current_step.CurrentStep.drop": ("capture.step_tracker.StepTracker._on_forward", 0),
    "capture.compiled_entry.until_left": ("capture.tensor_tree.tensor_info", 3),
    "capture.gradient_hooks.GradientHook.fail": ("capture.gradient_hooks.GradientHook.act", 0),
    "capture.gradient_hooks.PathHook.fail": ("capture.gradient_hooks.GradientHook.act", 0),
    "capture.module_hooks.ModuleHooks.tidy": ("capture.module_hooks._OneModulesHooks.take_off", 0),
    "capture.module_hooks._Leave.fail": ("capture.tensor_tree.tensor_info", 3),
    "capture.module_hooks._CallHook.fail": ("capture.forward_recorder.ForwardRecorder.enter", 3),
    "capture.finite_checks.FiniteChecks.stop": ("capture.finite_checks.FiniteChecks._look", 0),
    "capture.step_tracker.StepTracker._fail_to_check": ("capture.finite_checks.FiniteChecks._look", 0),
    "capture.step_tracker.StepTracker._fail": ("capture.step_tracker.StepTracker._on_forward", 0),
    "capture.entrances.Entrances.drop": ("capture.step_tracker.StepTracker._on_entrance", 0),
    "capture.optimizer_steps.OptimizerSteps._fail": ("capture.optimizer_steps.OptimizerSteps._before", 0),
    "capture.step_tracker.StepTracker.fail_at_step": ("capture.step_tracker.StepTracker.after_step", 0),
    "capture.step_tracker.StepTracker._stop": ("capture.step_tracker.StepTracker._on_forward", 0),
    "capture.facts.step_facts.StepFactsRecorder._note_fault": ("capture.facts.answers.Answers._take", 0),
    "training.writer_thread.WriterThread._leave_out": ("training.writer_thread.WriterThread._write_step", 0),
    "training.watcher.Watcher._why_nothing": ("capture.module_hooks.ModuleHooks.take_off", 0),
}
"""Functions that are called only after another has failed: which one, and after how many calls of it."""


@cache
def all_faults() -> tuple[Fault, ...]:
    """A fault for every function and method of capture, reduce, the recorder, the watcher, and for a sink's two."""
    names = functions_of(_modules())
    names += ["tests.listening.Listening.write", "tests.listening.Listening.close"]
    return tuple(Fault(name) for name in names if not is_named_in(NOT_BROKEN, name))


def faults_while_training() -> tuple[Fault, ...]:
    """Those in functions that some case calls without another fault."""
    return tuple(
        fault
        for fault in all_faults()
        if not is_named_in(NOT_CALLED, fault.name) and not is_named_in(HANDLERS, fault.name)
    )


def functions_of(modules: Iterable[ModuleType]) -> list[str]:
    """The full names of all that is defined in `modules`."""
    return [f"{module.__name__}.{name}" for module in modules for name in _functions(module)]


def is_named_in(table: Iterable[str], name: str) -> bool:
    """Whether `table` has this full name, or a beginning of it."""
    return name.removeprefix("torchgraph_explorer.").startswith(tuple(table))


def stale_names() -> list[str]:
    """What the tables name that is not, or no longer, there."""
    names = [name.removeprefix("torchgraph_explorer.") for name in functions_of(_modules())]
    return [
        known
        for table in (NOT_BROKEN, NOT_CALLED, HANDLERS)
        for known in table
        if not any(name.startswith(known) for name in names)
    ]


def _modules() -> Iterator[ModuleType]:
    for package in (torchgraph_explorer.capture, torchgraph_explorer.reduce):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)
    for name in ("idle_timer", "writer_thread", "pipeline", "watcher"):
        yield importlib.import_module(f"torchgraph_explorer.training.{name}")


def _functions(module: ModuleType) -> Iterator[str]:
    """Names of what is defined in `module`: functions, and methods as `Class.method`."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            yield from (f"{name}.{inner}" for inner, one in vars(value).items() if _is_ours(one, inner, module))
        elif inspect.isfunction(value) or hasattr(value, "cache_info"):
            yield name


def _is_ours(value: object, name: str, module: ModuleType) -> bool:
    """A method or property written in `module`, and neither a protocol's nor a dataclass' own."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if not isinstance(function, FunctionType) or function.__module__ != module.__name__:
        return False
    generated = function.__code__.co_filename != module.__file__
    return not generated and name not in ("__init_subclass__", "__subclasshook__", "__repr__")


SHARED: list[Path] = []
"""The folder in which the processes of a run of pytest keep what they counted; empty outside of pytest."""


def calls_of(case: Case) -> Mapping[str, int]:
    """How often `case` calls each function that may be broken, counted from when a fault would act."""
    return _calls_by_step(case)[-1]


def until_after(case: Case, fault: Fault) -> Case:
    """`case`, trained until one whole step after that in which it meets `fault`: further steps show nothing else.

    Of a case that logs each step. One that meets it only when all is closed is trained to its end.
    """
    for step, calls in enumerate(_calls_by_step(case)[:-1]):
        if calls.get(fault.name, 0) > fault.after:
            return replace(case, steps=min(case.steps, step + 2))
    return case


@cache
def _calls_by_step(case: Case) -> Sequence[Mapping[str, int]]:
    """Calls until the end of each step, and then those until all is closed."""
    if not SHARED:
        return _counted(case)
    name = hashlib.sha256(case.id.encode()).hexdigest()
    once(SHARED[0], name, lambda folder, file: (folder / file).write_text(json.dumps(_counted(case))))
    counted: list[dict[str, int]] = json.loads((SHARED[0] / name).read_text())
    return counted


def _counted(case: Case) -> Sequence[Mapping[str, int]]:
    """The same, counted in this process.

    A tracer counts. Functions wrapped around ours would disturb: capture knows a call by the frame that its hook is
    called from. A generator is counted each time that it goes on.
    """
    codes = {fault.name: _code_of(fault.name) for fault in all_faults()}
    names = {id(code): name for name, code in codes.items()}  # to hash a code, Python reads through all of it
    calls: Counter[str] = Counter()
    by_step: list[Mapping[str, int]] = []
    switch = Switch()

    def count(frame: FrameType, _event: str, _argument: object) -> None:
        if switch.on and (name := names.get(id(frame.f_code))) is not None:
            calls[name] += 1

    def around(training: Training, watcher: object) -> Any:
        step = training.step

        def counted_step(number: int) -> object:
            result = step(number)
            by_step.append(dict(calls))
            return result

        training.step = counted_step
        return _turning_on(switch)(training, watcher)

    _forget_results()
    gc.collect()
    gc.freeze()  # `watch` searches all objects, and what was imported and counted since the test began are many
    with _traced(count):
        run(case, watched=True, options=case.options, around=around)
    return [*by_step, calls]


def _forget_results() -> None:
    """Empty the caches of functions: one whose result is known from an earlier case would not be called."""
    for fault in faults_while_training():
        function = inspect.getattr_static(*_place(fault.name))
        if hasattr(function, "cache_clear"):
            function.cache_clear()


@contextmanager
def _traced(count: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Have `count` called at each call in this thread and those that it starts."""
    before = sys.gettrace()
    threading.settrace(count)
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(None)


def _turning_on(*switches: Switch) -> Callable[[object, object], Any]:
    """What `run` takes as `around`: the switches are on from when the model is watched."""

    def around(_training: object, _watcher: object) -> Any:
        for switch in switches:
            switch.on = True
        return nullcontext()

    return around


@contextmanager
def injected(fault: Fault, switch: Switch) -> Iterator[None]:
    """Have one function raise, wherever it was imported to, once the switch is on."""
    owner, attribute = _place(fault.name)
    try:
        with _patched(owner, attribute, _broken(inspect.getattr_static(owner, attribute), fault, switch)):
            yield
    finally:
        _give_back()


def _give_back() -> None:
    """End what a broken end has left on: its threads and hooks would warn in the next test, and take their time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for watcher in this_process.watchers:
            for each in watcher._pipelines:
                each.end()
                each.wait(time.monotonic() + 1)
    process_state.reset()


@cache
def _place(name: str) -> tuple[Any, str]:
    """The module or class that has the function with this full name, and its name there."""
    where, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(where), attribute
    except ModuleNotFoundError:
        module, _, owner = where.rpartition(".")
        return getattr(importlib.import_module(module), owner), attribute


def _code_of(name: str) -> CodeType:
    function = inspect.unwrap(_function(inspect.getattr_static(*_place(name))))
    code: CodeType = function.__code__
    return code


def _function(whole: Any) -> Any:
    return whole.fget if isinstance(whole, property) else getattr(whole, "__func__", whole)


def _broken(whole: Any, fault: Fault, switch: Switch) -> Any:
    function = _function(whole)

    def act() -> None:
        switch.calls += switch.on
        if switch.calls > fault.after:
            raise Injected(str(fault))

    def broken(*args: Any, **kwargs: Any) -> Any:
        act()
        return function(*args, **kwargs)

    # As if defined beside `function`: capture takes the innermost frame that is not its own for the user's.
    ours = inspect.unwrap(function).__globals__
    broken = FunctionType(broken.__code__, ours, broken.__name__, None, broken.__closure__)
    if isinstance(whole, property):
        return property(broken, whole.fset)
    return type(whole)(broken) if isinstance(whole, (classmethod, staticmethod)) else broken


@contextmanager
def _patched(owner: Any, attribute: str, broken: Any) -> Iterator[None]:
    whole = inspect.getattr_static(owner, attribute)
    places = [(owner, attribute)]
    if inspect.ismodule(owner):
        places += [
            (module, name)
            for full_name, module in [*sys.modules.items()]
            if full_name.startswith("torchgraph_explorer") and module is not owner
            for name, value in list(vars(module).items())
            if value is whole
        ]
    patches = [mock.patch.object(place, name, broken) for place, name in places]
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def check_unkillable(case: Case, fault: Fault, *more: Fault) -> bool:
    """Raise an AssertionError unless the training is that of the unwatched model; returns whether each fault was met.

    The functions are whole until the model is watched, and stay broken until all is closed.
    """
    faults = {each: Switch() for each in (fault, *more)}
    with ExitStack() as stack:
        for each, switch in faults.items():
            stack.enter_context(injected(each, switch))
        done = run(case, watched=True, options=case.options, around=_turning_on(*faults.values()))
    broken = f"in {case.id!r}, with {' and '.join(map(str, faults))} broken"
    assert_undisturbed(case, done, what=f"{broken}, something else came out", besides="counted")
    met = [switch.calls > each.after for each, switch in faults.items()]
    said = Counter(done.said)
    assert max(said.values(), default=0) <= case.watchers, f"{broken}, the same was said too often: {said}"
    assert done.said or not any(met), f"{broken}, nobody was told"
    return all(met)
