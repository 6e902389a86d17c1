"""The kept tensors of one step, and which steps are kept at all."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from torch import Tensor

from torchgraph_explorer.console import reason
from torchgraph_explorer.per_label import LabelSchedule, PerLabel
from torchgraph_explorer.reduce import kept
from torchgraph_explorer.reduce.neurons import Samples, samples_for_c
from torchgraph_explorer.reduce.room import Room
from torchgraph_explorer.reused_memory import Pieces
from torchgraph_explorer.schema import KeptArrays, KeptForm, TensorKind
from torchgraph_explorer.tensors.copies import Copied, NotKeptError, copied, samples_of, spread_over
from torchgraph_explorer.tensors.keep import Keep
from torchgraph_explorer.tensors.odd_samples import odd_samples
from torchgraph_explorer.tensors.patterns import Pattern, Place, nearest
from torchgraph_explorer.tensors.taken import Blocks, Placed, Taken, copied_by_c
from torchgraph_explorer.tensors.transfer import Bytes, on_host, stream_of

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"

MOST_REASONS = 64
"""Why one step was asked for."""

MOST_WAITING = 256 << 20
"""Bytes of kept tensors that are in memory at most: those of the current step, and those that wait to be written."""


_UNTOLD: tuple[TensorKind | None, str] = None, ""

GRADIENTS = ("grad_norm", "grad")
"""Kinds of series that a backward pass gives."""

SEEN_SEVERAL_TIMES = ("value", "grad_norm")
"""Kinds of series whose tensor may come again unchanged, as the next module's input. torch counts the writes to it."""

MOST_PLANS, MOST_BATCHES = 1 << 16, 1 << 8
"""Series, and sizes of batches, of which is held what was found out about them."""


class KeptSteps:
    """Decides which logged steps are kept, and which tensors of them.

    With `log_freq`, the first logged step from each multiple of it on is kept. The first half of the space on disk is
    for each of these, a quarter for one in two of them, an eighth for one in four, and so on.

    Attributes:
        most: Bytes that may be on disk.
        used: Bytes that are, as of the latest step that was written.
        is_asked: `watcher.keep` was called. From then on, each logged step is copied, so that it can be kept.
        plans: What is known of series, as in `reduce.kept`.
        numbers: The kept samples of batches of so many.
    """

    def __init__(self, keep: Keep, *, share: float, note: Callable[[str], None]) -> None:
        """Nothing is kept yet.

        Args:
            keep: What to keep.
            share: The part of `keep.megabytes` that is for this process.
            note: Called with a sentence on what is not kept.
        """
        self.used = 0
        self._waiting: dict[int, int] = {}
        self._keep, self._note = keep, note
        self.most = int(keep.megabytes * 1e6 * share)
        self._logged, self._spacing, self._largest = 0, 1, 0
        self._latest: int | None = None
        self._one_before: int | None = None
        self._selected: dict[tuple[str, str, str], bool] = {}
        self._noted: set[object] = set()
        self._is_checked = self.is_asked = False
        self._schedule = LabelSchedule(keep.log_freq) if isinstance(keep.log_freq, PerLabel) else None
        self._pieces = Pieces()
        self.plans: dict[SeriesKey, int] = {}
        self.numbers: dict[int, Samples] = {}

    @property
    def before(self) -> int:
        """Steps before one that is asked for, which are kept, too."""
        return self._keep.before if self._keep.is_flagged else 0

    @property
    def is_flagged(self) -> bool:
        """Whether only steps are kept that something asks for."""
        return self._keep.is_flagged

    def begin(self, step: int, label: str | None = None) -> StepTensors | None:
        """`step` is logged: what copies its tensors, or None if it is not kept. `label` is None if it is not known."""
        is_selected = self._is_selected(step, label) and self._has_room() and self._is_selected(step, label)
        self._logged, self._one_before = self._logged + 1, self._latest
        if is_selected:
            self._latest = step
        if not (is_selected or (self.is_asked and not self.is_flagged)):
            return None
        if (waiting := self.waiting) and waiting + self._largest > MOST_WAITING:
            self.note_once("behind", f"Tensors of some steps are not kept: {MOST_WAITING >> 20} MB wait to be written.")
            return None
        return StepTensors(self, step, is_selected=is_selected)

    def discard(self) -> None:
        """The latest step turned out not to be logged."""
        self._logged, self._latest = self._logged - 1, self._one_before

    def note_label(self, label: str | None) -> None:
        """There are steps with this label."""
        if self._schedule is not None:
            self._schedule.note(label)

    def keeps(self, step: int, label: str | None) -> bool:
        """Whether `step`, which `begin` has selected and which has this label, is kept."""
        if self._schedule is not None and not self._schedule.take(step, label):
            return False
        return not self.is_flagged

    def _is_selected(self, step: int, label: str | None) -> bool:
        """Whether it is time to keep a step again: `log_freq` counts steps of the training, as that of `watch` does."""
        every = self._keep.log_freq
        if isinstance(every, int):
            distance = every * self._spacing
            return self._latest is None or step // distance != self._latest // distance
        is_rare = self._logged % self._spacing != 0
        if self._schedule is None or is_rare:
            return not is_rare
        return self._schedule.may_select(step) if label is None else self._schedule.selects(step, label)

    @property
    def waiting(self) -> int:
        """Bytes in memory that are not written yet."""
        return sum(tuple(self._waiting.values()))

    @property
    def room(self) -> float:
        """Bytes that may still be written, if all that waits is."""
        return self.most - self.used - self.waiting

    def selects(self, place: tuple[str, str, str]) -> bool:
        """Whether the tensor at this module, role and path is kept."""
        known = self._selected.get(place)
        if known is None:
            one = Place(*place)
            known = self._selected[place] = any(each.matches(one) for each in self._keep.patterns)
        return known

    def plan(self, key: SeriesKey) -> int:
        """What is known of a series, which is noted in `plans`."""
        found = 0
        if self.selects((key[0], key[2], key[3])):
            found = kept.IS_KEPT
            found |= kept.IS_WHOLE if key[2] == "param" else 0
            found |= kept.COMES_AGAIN if key[4] in SEEN_SEVERAL_TIMES else 0
            found |= kept.IS_GRADIENT if key[4] in GRADIENTS else 0
        if len(self.plans) < MOST_PLANS:
            self.plans[key] = found
        return found

    def samples(self, batch: int) -> Samples:
        """The samples that are kept of a batch of this size. They are noted in `numbers`."""
        found = samples_for_c(samples_of(batch, self._keep.samples))
        if len(self.numbers) < MOST_BATCHES:
            self.numbers[batch] = found
        return found

    def begin_room(self) -> Room:
        """Memory for a step."""
        return Room(self._pieces, first=self._largest, left=int(min(self.room, MOST_WAITING)))

    @property
    def batch_dim(self) -> int:
        """The dimension of samples."""
        return self._keep.batch_dim

    def copy(self, tensor: Tensor, *, is_parameter: bool, chosen: Mapping[int, tuple[int, ...]], room: Room) -> Copied:
        """A copy of what is kept of `tensor`; `chosen` are samples for some sizes of batches.

        Raises:
            NotKeptError: It cannot be kept.
        """
        dim = None if is_parameter else self._keep.batch_dim
        return copied(tensor, samples=self._keep.samples, batch_dim=dim, chosen=chosen, room=room)

    def spread(self, categories: Sequence[str]) -> tuple[int, ...]:
        """The kept samples of a batch with these categories."""
        return spread_over(categories, self._keep.samples)

    def note_once(self, subject: object, sentence: str) -> None:
        """Say something about `subject`, the first time."""
        if subject not in self._noted:
            self._noted.add(subject)
            self._note(sentence)

    def note_full(self) -> None:
        """Say that there is no room on disk for what should be kept."""
        self.note_once("full", f"{self._limit()} What does not fit is not kept.")

    def ended(self, one: StepTensors, size: int) -> None:
        """A step of `size` bytes is about to be handed over. Says which patterns the first one did not need."""
        self._waiting[id(one)] = size
        self._largest = max(self._largest, size)
        if self._is_checked:
            return
        self._is_checked = True
        places = [Place(*place) for place in self._selected]
        for pattern in self._keep.patterns:
            if not any(pattern.matches(place) for place in places):
                self._note(f"keep: {pattern.text!r} selects no tensor of the first kept step. {_near(pattern, places)}")

    def written(self, one: StepTensors) -> None:
        """A step was written, or dropped. For any thread, while another step ends: so there is no sum to add to."""
        self._waiting.pop(id(one), None)

    def _has_room(self) -> bool:
        """Whether there is room on disk for one more step; makes steps rarer where that is due."""
        if self.room <= self._largest:
            self.note_full()
            return False
        if self.is_flagged:
            return True
        while self.most - self.room + self._largest > self.most * (1 - 0.5 / self._spacing):
            self._spacing *= 2
        if self._spacing > 1:
            self.note_once(
                "thinned", f"{self._limit()} From now on, steps are kept half as often, and later even less often."
            )
        return True

    def _limit(self) -> str:
        used, most, step = (_megabytes(size) for size in (self.used, self.most, self._largest))
        return f"Kept tensors take {used} of {most} MB (Keep(megabytes=)), and a step up to {step} MB."


class FullError(NotKeptError):
    """There is no room on disk."""


class TooMuchError(NotKeptError):
    """The step has too many to hold in memory, which further ones would meet, too."""


class StepTensors:
    """The kept tensors of one step (a `capture.step_parts.Keeper`). No method of that raises.

    Attributes:
        is_kept: It is kept in any case; else only if something asks for it. Known when it is over.
        reasons: Why it was asked for.
        native: Copies ordinary tensors that were measured just now, and returns whether it did. None where kept.c was
            not built, and at the end.
    """

    def __init__(self, steps: KeptSteps, step: int, *, is_selected: bool) -> None:
        """Begin with no kept tensor."""
        self._steps, self._step, self._is_selected = steps, step, is_selected
        self.is_kept = False
        self.reasons: list[str] = []
        self._taken: dict[SeriesKey, Taken | Placed] = {}
        self._by_python: list[Taken] = []
        self._named: dict[tuple[SeriesKey, str], Taken | Placed] = {}
        self._latest: dict[int, tuple[weakref.ref[Tensor], int, Taken | Placed]] = {}
        self._unnamed: dict[SeriesKey, None] = {}
        self._told: dict[tuple[str, str, str], tuple[TensorKind | None, str]] = {}
        self._categories: tuple[str, ...] = ()
        self._chosen: dict[int, tuple[int, ...]] = {}
        self._odd: dict[int, int] = {}
        self._numbers = dict(steps.numbers)
        self._size, self._room, self._has_replaced = 0, steps.begin_room(), False
        self._granted = self._room.left
        self._taking = kept.taking(
            self._room,
            steps.batch_dim,
            steps.is_flagged,
            steps.plans,
            self._latest,
            self._taken,
            self._unnamed,
            self._numbers,
        )
        self.native = None if self._taking is None else self._taking.take_measured
        self._read: Callable[[], list[Bytes]] = list
        self._arrays: KeptArrays | None = None

    def ask(self, reason: str) -> None:
        """Keep it, for this reason. For any thread."""
        if reason not in self.reasons and len(self.reasons) < MOST_REASONS:
            self.reasons.append(reason)

    def choose(self, categories: tuple[str, ...]) -> None:
        """Spread the kept samples evenly over these categories, one for each sample of the batch."""
        self._categories = categories
        self._choose(len(categories), self._steps.spread(categories))

    def forget(self) -> None:
        """Hold no weak reference any more: torch swaps no tensor that has one. Each is copied anew from now on."""
        self._latest.clear()

    def describe(self, key: SeriesKey, kind: TensorKind | None, node: str) -> None:
        """Note what `attach` was told of the tensor of this series."""
        self._told[key[0], key[2], key[3]] = kind, node

    def name_gradients(self, loss: str) -> None:
        """Keep the gradients that have come since this was last called under this name, too."""
        for key in self._unnamed:
            self._named[key, loss] = self._taken[key]
        self._unnamed.clear()

    def selects(self, module: str, role: str, path: str) -> bool:
        """Whether the tensor is to be kept."""
        return self._steps.selects((module, role, path))

    def take(self, key: SeriesKey, tensor: Tensor) -> None:
        """Copy `tensor`, of this series, if it is to be kept. What came before for the series is forgotten."""
        try:
            if self.native is None or self._taking is None or not self._taking.take(key, tensor):
                self._take(key, tensor)
        except FullError:
            self._steps.note_full()
        except TooMuchError as cause:
            self._steps.note_once("too much", f"{_words(key)} is not kept, and neither are others: {cause}")
        except NotKeptError as cause:
            self._steps.note_once(_place(key), f"{_words(key)} is not kept: {cause}.")
        except Exception as fault:  # ours, or memory ran out: the rest is kept
            self._steps.note_once(_place(key), f"{_words(key)} is not kept ({reason(fault)}).")

    def fail(self, fault: Exception) -> None:
        """Some tensors could not be given to `take`."""
        self._steps.note_once("failed", f"Some tensors are not kept ({reason(fault)}).")

    def finish(self, label: str | None = None) -> None:
        """The step, which has this label, is over: begin to copy what is on a GPU. Not called if the step is lost."""
        self.is_kept = self._is_selected and self._steps.keeps(self._step, label)
        self.native = None
        self._latest.clear()
        is_exact = not (self._has_replaced or self._room.has_replaced)
        self._size = self._granted - self._room.left if is_exact else self._count()
        self._steps.ended(self, self._size)
        if not is_exact:
            self._by_python = [one for one in self._unique() if isinstance(one, Taken)]
        self._read = on_host([(piece, one.stream) for one in self._by_python for piece in one.copied.pieces])

    def arrays(self) -> KeptArrays:
        """Its tensors, for the writer's thread. Waits for a GPU, and releases what is there."""
        if self._arrays is None:
            if self._taking is not None:
                self._taking.measure()
            self._arrays = self._read_arrays()
            self._forget()
        return self._arrays

    @property
    def size(self) -> int:
        """The size of the kept tensors in memory, in bytes."""
        return self._size

    @property
    def before(self) -> int:
        """How many steps before this one are kept with it, if something asks for it."""
        return self._steps.before

    @property
    def is_flagged(self) -> bool:
        """Whether the step is kept only if something asks for it, which NaN and infinity do."""
        return self._steps.is_flagged

    def _read_arrays(self) -> KeptArrays:
        keys = [*self._taken, *(key for key, _ in self._named)]
        losses = [""] * len(self._taken) + [loss for _, loss in self._named]
        copies = [*self._taken.values(), *self._named.values()]
        unique, pieces = self._unique(), iter(self._read())
        by_python = {id(one): [next(pieces) for _ in one.copied.pieces] for one in self._by_python}
        found = Blocks(unique, by_python, self._steps.batch_dim)
        number = {id(one): at for at, one in enumerate(unique)}
        numbers = [number[id(one)] for one in copies]
        samples = [found.samples[at] for at in numbers]
        forms = [found.forms[at] for at in numbers]
        told = [self._told.get(_place(key), _UNTOLD) for key in keys] if self._told else [_UNTOLD] * len(keys)
        return KeptArrays(
            keys,
            forms,
            samples,
            losses,
            [self._categories_of(*one) for one in zip(forms, samples, strict=True)],
            [kind or _kind(key) for key, (kind, _) in zip(keys, told, strict=True)],
            [node for _, node in told],
            found.blocks[numbers],
            found.places,
            found.memories,
        )

    def _categories_of(self, form: KeptForm, samples: tuple[int, ...]) -> tuple[str, ...]:
        names, dim = self._categories, form.batch_dim
        if not names or dim is None or form.shape[dim] != len(names):
            return ()
        return tuple(names[at] for at in samples)

    @property
    def most(self) -> int:
        """Bytes that may be on disk."""
        return self._steps.most

    def done(self, used: int | None) -> None:
        """It was written, or dropped; so much is on disk now, None if that is not known."""
        self._steps.written(self)
        self._size, self._arrays = 0, None
        self._forget()
        if used is not None:
            self._steps.used = used

    def _forget(self) -> None:
        """Release the memory of the copies, as soon as nothing else refers to it."""
        self._taking = self.native = None
        self._taken.clear()
        self._named.clear()
        self._by_python.clear()
        self._read, self._room = list, Room()

    def _take(self, key: SeriesKey, tensor: Tensor) -> None:
        """Like `take`, for all cases; slower."""
        plan = self._steps.plans.get(key)
        plan = self._steps.plan(key) if plan is None else plan
        if not plan & kept.IS_KEPT:
            return
        version = _version(tensor) if plan & kept.COMES_AGAIN else None
        known = self._latest.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            self._note(key, plan, known[2])
            return
        copied = self._copy(tensor, is_parameter=bool(plan & kept.IS_WHOLE))
        if self._steps.is_flagged and self._chooses_odd_samples(tensor, copied):
            copied = self._copy(tensor, is_parameter=False)
        self._require_room(copied.size)
        taken = self._of_python(copied)
        self._note(key, plan, taken)
        if version is not None:
            self._latest[id(tensor)] = weakref.ref(tensor), version, taken
        self._note_batch(copied)

    def _of_python(self, copied: Copied) -> Taken:
        taken = Taken(copied, stream_of(copied.values))
        self._by_python.append(taken)
        return taken

    def _note(self, key: SeriesKey, plan: int, taken: Taken | Placed) -> None:
        self._has_replaced = self._has_replaced or key in self._taken
        self._taken[key] = taken
        if plan & kept.IS_GRADIENT:
            self._unnamed[key] = None

    def _note_batch(self, copied: Copied) -> None:
        """Have kept.c copy the same samples of batches of this size."""
        if copied.batch_dim is not None and (batch := copied.shape[copied.batch_dim]) not in self._numbers:
            given = self._chosen.get(batch)
            self._numbers[batch] = self._steps.samples(batch) if given is None else samples_for_c(given)

    def _choose(self, batch: int, samples: tuple[int, ...]) -> None:
        """Keep these samples of batches of this size."""
        self._chosen[batch], self._numbers[batch] = samples, samples_for_c(samples)

    def _copy(self, tensor: Tensor, *, is_parameter: bool) -> Copied:
        return self._steps.copy(tensor, is_parameter=is_parameter, chosen=self._chosen, room=self._room)

    def _chooses_odd_samples(self, tensor: Tensor, copied: Copied) -> bool:
        """Whether samples with NaN or infinity are kept from now on.

        Earlier tensors that are there still, as they were when they were copied, are copied again.
        """
        batch = copied.shape[copied.batch_dim] if copied.batch_dim is not None else 0
        odd = odd_samples(tensor, copied, known=self._odd.get(batch, 0))
        if odd is None:
            return False
        self._odd[batch] = odd.weight
        self._choose(batch, odd.samples)
        again: dict[int, Taken] = {}
        for at, (ref, version, taken) in list(self._latest.items()):
            earlier, known = ref(), self._copied(taken)
            is_of_batch = known.batch_dim is not None and known.shape[known.batch_dim] == batch
            if earlier is not None and is_of_batch and _version(earlier) == version:
                copy = self._copy(earlier, is_parameter=False)
                again[id(taken)] = one = self._of_python(copy)
                self._has_replaced = True
                self._latest[at] = ref, version, one
        self._taken.update({key: again[id(one)] for key, one in self._taken.items() if id(one) in again})
        self._named.update({name: again[id(one)] for name, one in self._named.items() if id(one) in again})
        return True

    def _require_room(self, size: int) -> None:
        """Refuse a copy that is too much.

        Raises:
            NotKeptError: It is.
        """
        if size > self._room.left:
            count = self._count()  # without what was replaced
            self._granted = int(min(self._steps.room, MOST_WAITING))
            self._room.left = self._granted - count
        self._room.left -= size
        if self._room.left >= 0:
            return
        self._room.left += size
        if self._count() + size > self._steps.room:
            raise FullError
        raise TooMuchError(
            f"those of its step would take more than {MOST_WAITING >> 20} MB of memory. "
            "Name fewer tensors, or keep fewer samples (Keep(samples=))."
        )

    def _unique(self) -> list[Taken | Placed]:
        return list({id(one): one for names in (self._taken, self._named) for one in names.values()}.values())

    def _count(self) -> int:
        return sum(self._copied(one).size for one in self._unique())

    def _copied(self, taken: Taken | Placed) -> Copied:
        return taken.copied if isinstance(taken, Taken) else copied_by_c(taken, self._steps.batch_dim)


def _place(key: SeriesKey) -> tuple[str, str, str]:
    return key[0], key[2], key[3]


def _version(tensor: Tensor) -> int | None:
    """How often its memory was written to; None where torch does not count that."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return None


def _kind(key: SeriesKey) -> TensorKind:
    """What the tensor of a series is to the training, as far as that shows."""
    module, _, role, _, _ = key
    if role == "param":
        return "parameter"
    return "input" if role == "input" and not module else "intermediate"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.3g}" if size < 1e9 else f"{size / 1e6:.0f}"


def _words(key: SeriesKey) -> str:
    module, _, role, path, kind = key
    what = f"{role} {path!r} of module {module!r}" if module else f"{role} {path!r} of the model"
    return f"The {what}" if kind == "value" else f"The gradient of {what}"


def _near(pattern: Pattern, places: Iterable[Place]) -> str:
    near = nearest(pattern, places)
    return f"Similar names: {', '.join(map(repr, near))}." if near else "That step has no tensors."
