"""What changes belongs to an object with a lifetime. Every module-level object that can change is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(
    file for place in ("torchgraph_explorer", "tb_plugin", "wandb_panel") for file in (ROOT / place).rglob("*.py")
)
SOURCES = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
    for file in FILES
    if "node_modules" not in file.parts and file.name != "record_pb2.py"  # which protoc writes
}

ALLOWED = {
    # One object a room, with everything that the room keeps for the whole process.
    "torchgraph_explorer/capture/process_state.py:process_state": "torch's stance and compiler are the process's",
    "torchgraph_explorer/training/process.py:this_process": "all watches are closed when the process ends",
    "torchgraph_explorer/training/rank_rendezvous.py:agreement_numbers": "each process counts what it agrees on",
    "torchgraph_explorer/console.py:warned": "a fault that comes with each call is told once in a process",
    "torchgraph_explorer/interrupts.py:_process": "an interrupt may come while any watched model is captured",
    "torchgraph_explorer/interrupts.py:this_thread": "what this thread has changed for a moment",
    "torchgraph_explorer/sinks/live_viewer.py:_SERVERS": "watchers of one logdir share a server process",
    # Graphviz has state of its own, once for the process.
    "torchgraph_explorer/layout/dot.py:_graphviz": "a lock: Graphviz can do one layout at a time",
    "torchgraph_explorer/layout/placing.py:_placing": "a lock: a layout that is asked for twice is made once",
    "torchgraph_explorer/exploring/products.py:_level": "a lock: torch has one level of dual numbers in a process",
    # Caches of pure functions. They change no result.
    "torchgraph_explorer/capture/call_stack.py:_is_running_in_c": "looks up a compiled function once",
    "torchgraph_explorer/capture/gradient_hooks.py:series_key": "the same tuple for the same series, step after step",
    "torchgraph_explorer/capture/parameters.py:_only_key": "the same for the names of a parameter",
    "torchgraph_explorer/capture/native_calls.py:makers": "looks up compiled functions once",
    "torchgraph_explorer/capture/path_gradients.py:can_make_stale": "asks once what this torch can do",
    "torchgraph_explorer/capture/tensor_tree.py:info_of": "the same TensorInfo for the same tensor, step after step",
    "torchgraph_explorer/capture/operation_tensors.py:_written_arguments": "of torch's operators, some thousand",
    "torchgraph_explorer/capture/inline/probes.py:_operator": "registers an operator with torch, which it can do once",
    "torchgraph_explorer/findings/kinds/entries.py:explanations": "two pages of the package, which do not change",
    "torchgraph_explorer/layout/insides.py:_members": "layouts are expensive; bounded",
    "torchgraph_explorer/layout/placing.py:_place": "the same",
    "torchgraph_explorer/native.py:_is_current": "the folders with C files",
    "torchgraph_explorer/record/steps/native_body.py:_library": "loads the compiled library once",
    "torchgraph_explorer/record/steps/training.py:_situation": "names of facts, which seldom change; four steps'",
    "torchgraph_explorer/reduce/neurons.py:_keep": "looks up a compiled function once",
    "torchgraph_explorer/reduce/neurons.py:samples_for_c": "bounded",
    "torchgraph_explorer/reduce/neurons.py:_sizes": "bounded",
    "torchgraph_explorer/reduce/row_buffer.py:_fingerprint": "as `functions`",
    "torchgraph_explorer/reduce/cuda_driver.py:driver": "loads the driver's library once",
    "torchgraph_explorer/reduce/gpu_rows.py:kernels": "loads the kernels once for each GPU",
    "torchgraph_explorer/reduce/row_buffer.py:_add_left": "as `functions`",
    "torchgraph_explorer/reduce/to_host.py:_first_own_stream": "one stream for each GPU: torch has few",
    "torchgraph_explorer/reduce/row_buffer.py:functions": "looks up compiled functions once",
    "torchgraph_explorer/reduce/row_buffer.py:library": "loads the compiled library once",
    "torchgraph_explorer/reduce/row_buffer.py:tensor_functions": "the same for tensors.c",
    "torchgraph_explorer/reduce/kept.py:_functions": "the same for kept.c",
    "torchgraph_explorer/reduce/finite.py:is_finite": "the same for finite.c",
    "torchgraph_explorer/reduce/sampling.py:stride_for": "bounded",
    "torchgraph_explorer/capture/facts/operations.py:_name": "bounded",
    "torchgraph_explorer/tensors/copies.py:samples_of": "bounded",
    "torchgraph_explorer/tensors/taken.py:_form": "bounded",
    "torchgraph_explorer/record/tensors/blocks.py:_functions": "the same for blocks.c",
    "torchgraph_explorer/server/answers.py:_names": "bounded",
    "torchgraph_explorer/server/export.py:_inlined_bundle": "the viewer's files, which do not change; bounded",
}
"""What may change at module level, and why."""

UNCHANGING = {
    *("bytes", "float", "frozenset", "getLogger", "index", "int", "join", "namedtuple", "slice", "sorted", "str"),
    *("tobytes", "tuple", "compile", "dtype", "frombuffer", "Struct", "MappingProxyType", "CFUNCTYPE"),
    *("ParamSpec", "TypeVar"),
}
"""Calls whose result does not change, or is made for being shared."""

CHANGING_METHODS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("setdefault", "sort", "update"),
}


def frozen_classes() -> frozenset[str]:
    """Names of the package's frozen dataclasses and named tuples."""
    classes = (
        node for source in SOURCES.values() for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)
    )
    return frozenset(
        node.name
        for node in classes
        if any("frozen=True" in ast.unparse(one) for one in node.decorator_list)
        or any("NamedTuple" in ast.unparse(one) for one in node.bases)
    )


def changing(source: str, frozen: frozenset[str] = frozenset()) -> list[str]:
    """The names in `source`, a module, of what can change at its level."""
    tree = ast.parse(source)
    return sorted({*_objects(tree, frozen), *_written_tables(tree), *_caches(tree), *_global_statements(tree)})


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _is_constant(name: str) -> bool:
    return name.isupper() or name in ("__all__", "_HOMES")


def _objects(tree: ast.Module, frozen: frozenset[str]) -> Iterator[str]:
    """Containers and objects, but for tables in capitals, which are constants as long as nothing writes to them."""
    for name, value in _assigned(tree):
        match value:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                if called not in UNCHANGING | frozen:
                    yield name
            case ast.Call(func=ast.Call()):  # what a made function returns, such as a callback for C
                pass
            case ast.Dict() | ast.List() | ast.Set() | ast.DictComp() | ast.ListComp() | ast.SetComp():
                if not _is_constant(name):
                    yield name


def _written_tables(tree: ast.Module) -> Iterator[str]:
    names = {name for name, _ in _assigned(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in CHANGING_METHODS:
                pass
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                pass
            case ast.AugAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        if name in names and name.isupper():
            yield name


def _caches(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any("cache" in ast.unparse(one) for one in node.decorator_list):
            yield node.name


def _global_statements(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


@pytest.mark.slow
def test_what_changes_at_module_level_is_listed() -> None:
    frozen = frozen_classes()
    found = {f"{file}:{name}" for file, source in SOURCES.items() for name in changing(source, frozen)}
    assert found == set(ALLOWED), "let it belong to an object with a lifetime, or list it with a reason"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("seen = {}", ["seen"], id="a dict"),
        pytest.param("seen: set[int] = set()", ["seen"], id="a set"),
        pytest.param("seen = weakref.WeakSet()", ["seen"], id="a weak set"),
        pytest.param("here = threading.local()", ["here"], id="a thread's own"),
        pytest.param("state = State()", ["state"], id="an object"),
        pytest.param("def f():\n    global count\n    count = 1", ["count"], id="a global statement"),
        pytest.param("@lru_cache(maxsize=3)\ndef f(x): ...", ["f"], id="a cache"),
        pytest.param("TABLE = {}\ndef f(x):\n    TABLE[x] = 1", ["TABLE"], id="a table that is written to"),
        pytest.param("TABLE = []\ndef f(x):\n    TABLE.append(x)", ["TABLE"], id="a list that grows"),
        pytest.param("TABLE = {'a': 1}", [], id="a table"),
        pytest.param("WORD = re.compile('a')", [], id="a pattern"),
        pytest.param("NAMES = frozenset({1})", [], id="a frozen set"),
        pytest.param("def f():\n    seen = {}", [], id="a function's own"),
    ],
)
def test_what_changes_is_found(source: str, expected: list[str]) -> None:
    assert changing(source) == expected
