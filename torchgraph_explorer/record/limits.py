"""Upper bounds on everything in a record: docs/format.md, Bounds.

A record is untrusted, and a crafted one can have correct checks. So every size is compared with a bound before memory
is taken for it. Anything beyond its bound is damage.
"""

from __future__ import annotations

from torchgraph_explorer.record.format.envelope import DamageError

SEGMENT_BYTES = 1 << 33
"""A segment file. Ours end at 64 MiB, or hold a single record, whose body may have 4 GiB."""

BEGINNING_BYTES = 1 << 20
"""The beginning of a segment file, as far as it is read for the session alone."""

HEAD_BYTES = 1 << 25
"""The head of a record. The longest are those of series, some 60 bytes each, where they were not written in parts."""

GRAPH_BYTES = 1 << 26
"""A graph, not compressed."""

GRAPH_BYTES_FREE, GRAPH_BYTES_PER_BYTE = 1 << 15, 128
"""The most bytes of a graph, and how many more for each compressed byte. A graph of 50,000 like modules has 24."""

GRAPH_PARTS_FREE, GRAPH_PARTS_PER_BYTE = 64, 4
"""The most messages in a graph, and how many more for each compressed byte. The same graph has 1.1."""

PART_BYTES = 1 << 22
"""One module, call, node or edge."""

LAST_SERIES = 1 << 24
"""The id of a series, which our writers count from 0."""

LAYOUT_SERIES = 1 << 20
"""Series in a frame."""

LAYOUT_BYTES = 1 << 22
"""A layout, not compressed. The two differences of a series take 2 bytes, most often."""

LAYOUTS_FREE, LAYOUTS_PER_BYTE = 1 << 23, 4
"""The most bytes of a model's different layouts, and how many more for each byte of its frames' bodies."""

MOST_INFLATED = 1100
"""Bytes that one compressed byte can stand for; zlib reaches 1032."""

COLUMNS = 256
"""Statistics in a row."""

TABLE_BYTES = 1 << 28
"""The table of a frame. With as many rows as series may be in a frame, ours would have 71 MB."""

BODY_AT_ONCE = 1 << 26
"""Bytes of a frame's body that are read at once; of a longer one, row by row. A file may have gigabytes of zeros that
take no room on the disk."""

PACKED_BYTES = 1 << 14
"""One packed histogram. Of 2039 buckets with counts of 5 bytes each it has 10195."""

LOGGED_AT_ONCE = 1 << 19
"""Values in one record of scalars. Ours have some 2¹⁵, and more where one call logs more."""

LOGGED_VALUES = 1 << 23
"""Values of scalars of a model, which take 28 bytes each in memory."""

SCALARS = 1 << 14
"""Different scalars of a model."""

STEP_NOTES = 10_000
"""Notes of a model."""

LAST_STEP = 1 << 53
"""More than `watch` ever writes. The viewer asks for steps by number, and JavaScript has no exact ones beyond."""

CELL_STEPS, CELL_MODULES = 1 << 10, 1 << 20
"""Steps and modules in a block of cells. Ours have up to 64 steps."""

CELL_BLOCKS = 1 << 17
"""Blocks of cells of a model. The cells of further steps are computed from the steps themselves."""

KEPT_TENSORS = 1 << 16
"""Tensors that are kept at one step."""

KEPT_LAYOUT_BYTES = 1 << 24
"""The layout of them, not compressed."""

KEPT_DIMENSIONS = 64
"""Dimensions of one of them; torch has no more."""

TENSOR_GRAPH_BYTES, TENSOR_GRAPH_EDGES = 1 << 22, 1 << 18
"""The dependency graph of named tensors, not compressed. It has as many tensors as are kept at one step."""

KEPT_GRAPHS = 1 << 10
"""Dependency graphs of a session. Steps with further ones have none."""

REASONS, CATEGORIES = 64, 1 << 16
"""Why a step was kept, and different categories of its samples. Of more, we write the first ones."""

LABELS = 1 << 10
"""Different labels of a model's steps. Steps with further ones have none."""

LABEL = 1_100
"""Characters of a label, a reason or a category. Ours have at most 1,000 and a mark, see `printable.py`."""

PASSES = 1 << 48
"""Forward passes in a step."""

OPTIMIZERS = 64
"""Optimizers that made an update. Of more, we write the first ones."""

OPTIMIZER_NAME = 240
"""Characters of an optimizer's name. Ours have at most 200 and a mark, see `printable.py`."""

STEP_KINDS = 1 << 8
"""Different ends and optimizers of a model's steps. Steps of further ones have no facts."""

SITUATION_BYTES = 1 << 22
"""What is known of a step by name, not compressed. Ours have at most some ten lists of 1000 names."""

SITUATIONS_BYTES = 1 << 26
"""All different situations of a model that are read. Steps in further ones have no facts about the training."""

TRAINING_BYTES = 1 << 25
"""All different situations of a model, compressed, and the numbers of all its steps.

These are some 50 bytes for each step, and 20 for each of its modules.
"""

NOTES = 64
"""Notes of a session that is not closed. Later ones are left out."""

NOTE_TEXT = 10_100
"""Characters of one of them. Ours have at most 10,000 and a mark, see `printable.py`."""

RULES, FOUND, EVIDENCE = 1 << 8, 1 << 10, 1 << 8
"""Rules of the user's own in one record of what they found; their findings together; and the numbers of a finding."""

LAST_CALL = 1 << 31
"""The number of a module's call in a step, in a finding."""

_LAST_MOMENT = 2.0**63
"""In seconds. No clock counts further."""


def is_moment(seconds: float) -> bool:
    """Whether `seconds` since the epoch can be a time, which infinity and NaN cannot."""
    return 0 <= seconds <= _LAST_MOMENT


def moment(seconds: float, what: str) -> float:
    """`seconds` since the epoch, if that can be a time.

    Raises:
        DamageError: It cannot.
    """
    if not is_moment(seconds):
        raise DamageError(f"{what} is {seconds!r}, which is not a time")
    return seconds
