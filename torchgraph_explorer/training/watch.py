"""`watch`: what a user calls to watch a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.forward_passes import PASSES
from torchgraph_explorer.findings.own_rules import OwnRule
from torchgraph_explorer.per_label import PerLabel
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.tensors.keep import Keep
from torchgraph_explorer.training.on_finding import OnFinding
from torchgraph_explorer.training.options import (
    KINDS,
    Display,
    Passes,
    Scaler,
    Settings,
    Target,
    TimeLog,
    logged,
    patterns,
    several,
)
from torchgraph_explorer.training.schedule import Schedule
from torchgraph_explorer.training.start import start
from torchgraph_explorer.training.torchexplorer import takes_old_parameters
from torchgraph_explorer.training.watcher import Watcher

LIGHTNING_EPOCHS: TimeLog = ("epoch", lambda module, _step: module.current_epoch)
"""For `time_log`: a LightningModule's epoch as the second time axis."""


@takes_old_parameters
def watch(
    model: nn.Module,
    log: str | Sequence[str] = KINDS,
    log_freq: int | str | PerLabel | Schedule = "auto",
    *,
    backend: str | Sink | Sequence[str | Sink] = "standalone",
    bins: int = 64,
    sample_n: int | None = 16_384,
    reject_outlier_proportion: float = 0.1,
    time_log: TimeLog | None = None,
    phases: str | Sequence[str] = ("train",),
    optimizer: Optimizer | None = None,
    scaler: Scaler | None = None,
    ranks: str = "merged",
    compiled: str = "eager",
    passes: Passes = PASSES,
    keep: Keep | None = None,
    only: str | Sequence[str] | None = None,
    except_: str | Sequence[str] = (),
    name: str | None = None,
    logdir: str | os.PathLike[str] = "runs",
    run: str | Any = None,
    writer: Any = None,
    upload_record: bool = False,
    host: str = "127.0.0.1",
    port: int = 8080,
    rules: Sequence[OwnRule] = (),
    on_finding: OnFinding | None = None,
    verbose: bool = True,
    block_at_exit: bool | None = None,
) -> Watcher:
    """Record what happens inside `model` while it trains, and show it.

    Training is not disturbed: losses, parameters, gradients and random numbers are those of the unwatched model.

    A step is one update of the model's parameters by an optimizer, together with all passes in training mode with
    gradients enabled since the previous update, whichever modules of the model the training loop calls. If no optimizer
    has the model's parameters, a step is a forward pass of the model and its backward pass. A logged step is one that
    is recorded.

    With `TORCHGRAPH=off` in the environment, nothing is watched, recorded or shown.

    If the model is already watched under the same name, that watch is closed, and the new one continues in its run at
    its step, unless another run is given. The parameters of TorchExplorer's `watch` are accepted, too.

    Args:
        model: Any `nn.Module`.
        log: What to record: a list of `io` (inputs and outputs of every module), `io_grad` (the l2 norms of their
            gradients, one per sample), `params` (parameters), `params_grad` (their `.grad`) and `cost` (how long each
            call takes in the training's thread, in seconds, and the bytes of its outputs). An empty list records the
            graph alone. If `scalars` is in the list, statistics are recorded without histograms; `"scalars"` alone does
            that for the first four.
        log_freq: Which steps to log: every so many; or `"auto"`, the steps 0, 1, 10, 25 from where the training begins
            or goes on, and every 50th; or `"log"`, every step at first and then exponentially fewer; or a function from
            a step to True or False; or a `PerLabel`. If optimizers take turns, steps of the others are added, except to
            those of the last two.
        backend: `"standalone"` (a run folder and a live viewer), `"record"` (a run folder only), `"tensorboard"` (a run
            folder that TensorBoard shows), `"wandb"` (a run folder, and panels in the active W&B run), `"none"`
            (nothing: the watcher has the module graph), any object with `write(record)` and `close()`, or a list of
            these.
        bins: Rows of a drawn histogram. You can change it in the viewer.
        sample_n: About how many elements of a tensor to take statistics from; None for all. NaN and infinity are
            searched for in all elements.
        reject_outlier_proportion: The share of the most extreme elements that the drawn range leaves out. You can
            change it in the viewer.
        time_log: A second time axis: its name, and a function of the model and the step, such as `LIGHTNING_EPOCHS`.
        phases: `"train"`, or `("train", "eval")` to also record the first evaluation pass after each training step,
            under the model's name with `(eval)`. Backends that are objects of your own only get training.
        optimizer: Your optimizer. Adds each gradient as the optimizer gets it (`optimizer_grad`: after unscaling and
            clipping), each parameter's update, and the ratio of the update's l2 norm to the parameter's.
        scaler: Your GradScaler. Gradients are recorded without its factor, and the factor is recorded, too.
        compiled: How a logged step of a compiled model runs: `"eager"` as it was written, `"inline"` in a second
            compiled form that exposes the model's tensors. All other steps run the same code as unwatched. With torch's
            default backend, a logged step rounds differently from the compiled one and may draw other random numbers.
        passes: How many passes through the model to record in a step that has several, such as the micro-batches of an
            update: the first ones, or `("last", 4)`, or `("spread", 4)` over the step. If the loop enters the model at
            several modules, each of them has that many. For the latter two, the number of passes is taken from the
            previous logged step.
        keep: Which tensors of training steps to keep whole, besides their histograms: `Keep("head", "*.weight")` keeps
            values and gradients of 8 samples, and statistics of each neuron over the batch. None keeps no tensor.
        only: Record only these modules: a pattern of qualified names, or a list of patterns. `*` stands for any
            characters, including dots. A pattern also chooses everything in the modules that it names. The modules
            around them are recorded, too.
        except_: Do not record these modules and what is in them: patterns, as in `only`.
        ranks: If several processes train the model: `"merged"` makes one record, as if their tensors were concatenated;
            with `"all"`, each rank is a model of its own, `<name> (rank 0)` and so on.
        name: The model's name in the run; by default its class.
        logdir: Folder of runs, or a URL that fsspec knows. Records are uploaded to a URL about every ten seconds, and
            the last ones when the watcher is closed. Close it yourself then: some stores accept nothing from a process
            that is ending, and a process that is killed uploads nothing.
        run: Name of the run. By default, that of the other models that are watched in this process, or a new one. Or a
            W&B run: then the backend `"wandb"` is added, and the folder is named after the run's id.
        writer: A `torch.utils.tensorboard.SummaryWriter` whose folder is the run's, instead of `logdir` and `run`. The
            backend `"tensorboard"` is added.
        upload_record: With the backend `"wandb"`: also upload the record to the W&B run, as an artifact at the end.
        host: Address that the viewer listens on.
        port: Its port. If it is taken, the next free one is used.
        rules: Rules of your own, in addition to ours: functions of the model's record that yield findings. Rules from a
            module of yours run in another process while the model trains. Rules from the script that is run, and
            functions within functions, run when the watch is closed. Their findings are recorded with the run.
        on_finding: A function that is called with each new finding, between two steps in the training's thread, or when
            the watcher is closed at the latest. If it raises, that ends the training. Findings are then not printed.
        verbose: Print the addresses of viewer and run, and what is found to be wrong.
        block_at_exit: Keep the viewer until Ctrl-C when the script ends. None does so in a terminal, but not under CI.

    Returns:
        The watcher. Close it at the end; it also closes itself at exit.

    Raises:
        OptionError: An argument has a value that is not allowed.
        UnknownBackendError: No backend has that name.

    Example:
        >>> with watch(model, log_freq=10, backend="record", run="watched", verbose=False) as watcher:
        ...     for _ in range(20):
        ...         train(model)
        >>> open_run("runs/watched").model().steps
        array([ 0, 10])
    """
    settings = Settings(
        log=logged(log),
        log_freq=log_freq,
        bins=bins,
        sample_n=sample_n,
        reject_outlier_proportion=reject_outlier_proportion,
        time_log=time_log,
        phases=several(phases),
        optimizer=optimizer,
        scaler=scaler,
        ranks=ranks,
        compiled=compiled,
        passes=passes,
        keep=keep,
        only=None if only is None else patterns(only, "only"),
        without=patterns(except_, "except_"),
    )
    target = Target(
        backend=backend, name=name, logdir=logdir, given_run=run, writer=writer, upload_record=upload_record
    )
    display = Display(
        host=host, port=port, verbose=verbose, block_at_exit=block_at_exit, rules=rules, on_finding=on_finding
    )
    return start(model, settings, target=target, display=display)
