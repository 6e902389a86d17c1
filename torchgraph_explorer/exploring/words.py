"""The words that tokens stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.printable import printable

Words: TypeAlias = "Sequence[str] | Callable[[int], str]"
"""The word of each number; or what gives it, such as a tokenizer's `decode`."""

Speller: TypeAlias = "Callable[[int], str]"

LONGEST = 40
"""Characters of a word that are shown."""


MOST_ESCAPED = 10 * LONGEST
"""Characters of one whose characters cannot all be shown as they are."""


def speller(words: Any) -> Speller | None:
    """What gives the word of a number: an empty one for a number that has none. None without `words`.

    Raises:
        OptionError: `words` is neither a sequence nor a function.
    """
    if words is None:
        return None
    if isinstance(words, str) or not (callable(words) or (hasattr(words, "__len__") and hasattr(words, "__getitem__"))):
        raise OptionError(
            f"words={words!r:.80} does not say what tokens stand for. Pass the word of each number in a list, or a "
            f"function that gives it, such as tokenizer.decode."
        )

    def spell(number: int) -> str:
        try:
            is_known = callable(words) or 0 <= number < len(words)
            found = words(number) if callable(words) else words[number] if is_known else ""
        except Exception:  # of the user's function, which knows no such number
            return ""
        return printable(str(found)[:LONGEST], most=MOST_ESCAPED)

    return spell
