"""Rules of the user's own: functions of a model's record that yield findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, cast

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.finding import SEVERITIES, Finding, RuleFindings
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record.model_record import ModelRecord

OwnRule: TypeAlias = Callable[[Any], Iterable[Finding]]
"""A rule. It gets a model's record, as `open_run(run).model()` returns it, and yields findings."""

MOST = 50
"""How many findings of one rule are reported at most."""

RULES_NAME = "RULES"
"""The name of the list of rules in a file."""

_EXAMPLE = "A file of rules defines functions of a model's record that yield findings, and a list of them, RULES."


class RuleAddress(NamedTuple):
    """Where another process finds a rule: by the name of its module, the module's file, and its own name in it."""

    module: str
    file: str
    name: str

    def load(self) -> OwnRule:
        """The rule.

        Raises:
            ImportError: It is no Python file.
            Exception: Whatever the file raises.
        """
        module = load_module(self.module, self.file)
        return cast("OwnRule", getattr(module, self.name))


def address_of(rule: OwnRule) -> RuleAddress | None:
    """Where another process finds `rule`. None if it is not a function at the top of a module that can be imported.

    The script that is run cannot be imported: that would begin its training again.
    """
    name, module = getattr(rule, "__qualname__", ""), sys.modules.get(getattr(rule, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__":
        return None
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    is_script = main is not None and Path(main).resolve() == Path(file).resolve()
    is_found = getattr(module, name, None) is rule and file.endswith(".py") and not is_script
    return RuleAddress(module.__name__, str(Path(file).resolve()), name) if is_found else None


def load_rules(path: str) -> tuple[OwnRule, ...]:
    """The rules in the list `RULES` of the Python file `path`.

    Raises:
        NotFoundError: There is no such file.
        OptionError: It cannot be run, or it has no rules.
    """
    file = Path(path)
    if not file.is_file():
        raise NotFoundError(f"There is no file {path}. {_EXAMPLE}")
    try:
        module = load_module(file.stem, path)
    except (Exception, SystemExit) as fault:  # whatever the file does
        raise OptionError(f"{path} cannot be loaded{_line(fault, path)}: {reason(fault)}.") from fault
    rules = getattr(module, RULES_NAME, None)
    if rules is None:
        raise OptionError(f"{path} has no list {RULES_NAME}. {_EXAMPLE}")
    return check_rules(rules, f"{RULES_NAME} in {path}")


def check_rules(rules: object, name: str) -> tuple[OwnRule, ...]:
    """`rules` as a tuple; `name` is what an error calls them.

    Raises:
        OptionError: They are no list of functions, or an empty one.
    """
    listed = tuple(rules) if isinstance(rules, Sequence) and not isinstance(rules, str) else ()
    if not listed or not all(map(callable, listed)):
        raise OptionError(
            f"{name} is {printable(repr(rules))}. Pass a list of functions, each of which takes a model's "
            "record and yields findings."
        )
    return listed


def load_module(name: str, path: str) -> ModuleType:
    """Run the Python file `path` as the module `name`.

    Raises:
        ImportError: It is no Python file.
        Exception: Whatever the file raises.
    """
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("its name does not end in .py")
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # as `import` does: dataclasses look for it there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)  # as `import` does: nobody may find a half of it
        raise
    finally:
        if before is not None:
            sys.modules[name] = before
    return module


def findings_of_own(rule: OwnRule, model: ModelRecord) -> list[Finding]:
    """What one rule says of `model`; if it raises, a finding of the kind `rule-failed`."""
    try:
        return list(islice(_checked(rule(model)), MOST))
    except Exception as fault:
        return [_failed(rule, model, fault)]


def run_rules(rules: Iterable[OwnRule], model: ModelRecord) -> tuple[RuleFindings, ...]:
    """What each rule says of `model`."""
    return tuple(RuleFindings(rule_name(rule), tuple(findings_of_own(rule, model))) for rule in rules)


def with_recorded(found: Sequence[RuleFindings], model: ModelRecord) -> tuple[RuleFindings, ...]:
    """`found`, and what other rules found while the model trained, as the record has it."""
    names = {one.rule for one in found}
    return *found, *(one for one in model.found_by_rules if one.rule not in names)


def rule_name(rule: OwnRule) -> str:
    """The name of a rule in messages."""
    return printable(str(getattr(rule, "__qualname__", type(rule).__qualname__)))


def _checked(findings: Iterable[Finding] | None) -> Iterator[Finding]:
    """The findings with plain numbers.

    Raises:
        TypeError: One is no finding.
        ValueError: One has a value that is not allowed.
    """
    made: dict[int, tuple[Finding, Finding]] = {}  # with the finding itself, so that its id is not used again
    for one in findings if findings is not None else ():
        if not isinstance(one, Finding):
            raise TypeError(f"it yielded {printable(repr(one))}, which is no torchgraph_explorer.Finding")
        if one.severity not in SEVERITIES:
            raise ValueError(f"severity={one.severity!r}; choose one of {', '.join(SEVERITIES)}")
        numbers = {str(name): float(value) for name, value in one.evidence.items()}
        causes = tuple(made[id(cause)][1] if id(cause) in made else cause for cause in one.causes)
        plain = replace(one, step=int(one.step), last_step=int(one.last_step), evidence=numbers, causes=causes)
        made[id(one)] = one, plain
        yield plain


def _failed(rule: OwnRule, model: ModelRecord, fault: Exception) -> Finding:
    file = getattr(getattr(rule, "__code__", None), "co_filename", "")
    steps = model.steps
    return Finding(
        kind="rule-failed",
        severity="warning",
        step=int(steps[0]),
        last_step=int(steps[-1]),
        text=f"Your rule {rule_name(rule)!r} failed{_line(fault, file)}: {reason(fault)}.",
        advice="Mend the rule. What it would have found is missing here.",
    )


def _line(fault: BaseException, file: str) -> str:
    """Where in `file` it was raised, in words; empty if that is not known."""
    if isinstance(fault, SyntaxError):
        return ""  # its message says so
    lines, here = [0], fault.__traceback__
    while here is not None:
        lines += [here.tb_lineno] if here.tb_frame.f_code.co_filename == file else []
        here = here.tb_next
    return f" in line {lines[-1]}" if lines[-1] else ""
