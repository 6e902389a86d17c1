"""The words that tokens stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.printable import printable

Words: TypeAlias = "Sequence[str] | Mapping[str, int] | Callable[[int], str]"
"""The word of each number; the number of each word, as `tokenizer.get_vocab()`; or what gives a number's word."""

LONGEST = 40
"""Characters of a word that are shown."""


MOST_ESCAPED = 10 * LONGEST
"""Characters of one whose characters cannot all be shown as they are."""

MOST_SEARCHED = 2**20
"""Numbers whose words are looked through."""


class Vocabulary:
    """The words of numbers, in both directions. For many threads."""

    def __init__(self, words: Callable[[int], str], *, size: int) -> None:
        """`words` gives the word of a number from 0 to `size`; it may raise for one that has none."""
        self._words, self._size = words, min(size, MOST_SEARCHED)

    def spell(self, number: int) -> str:
        """The word of a number; empty for one that has none."""
        try:
            found = self._words(number)
        except Exception:  # of the user's function, which knows no such number
            return ""
        return printable(str(found)[:LONGEST], most=MOST_ESCAPED)

    def search(self, text: str, *, most: int) -> list[tuple[int, str]]:
        """Numbers whose words are `text`, begin with it, or contain it, in this order, and their words.

        White space around a word, and upper and lower case, only count where several words are equal otherwise.
        """
        wanted, plain = text.strip(), _plain(text)
        if not plain:
            return []
        found = [
            (0 if word.strip() == wanted else _distance(its_plain, plain), len(word), number, word)
            for number, (word, its_plain) in enumerate(self._all)
            if plain in its_plain
        ]
        return [(number, word) for *_, number, word in sorted(found)[:most]]

    @cached_property
    def _all(self) -> list[tuple[str, str]]:
        return [(word, _plain(word)) for word in map(self.spell, range(self._size))]


def _plain(word: str) -> str:
    return word.strip().casefold()


def _distance(word: str, wanted: str) -> int:
    """How far a word that contains `wanted` is from it."""
    return 1 if word == wanted else 2 if word.startswith(wanted) else 3


def vocabulary(words: Any, *, size: int = 0) -> Vocabulary | None:
    """The vocabulary of `words`; None without. `size` is that of one whose words a function gives.

    Raises:
        OptionError: `words` is neither a sequence, nor a mapping, nor a function.
    """
    if words is None:
        return None
    if isinstance(words, Mapping):
        by_number = {number: word for word, number in words.items()}
        whole = [number for number in by_number if isinstance(number, Integral)]
        return Vocabulary(by_number.__getitem__, size=int(max(whole, default=-1)) + 1)
    if isinstance(words, str) or not (callable(words) or (hasattr(words, "__len__") and hasattr(words, "__getitem__"))):
        raise OptionError(
            f"words={words!r:.80} does not say what tokens stand for. Pass the word of each number in a list, the "
            f"number of each word in a dict, as tokenizer.get_vocab(), or a function such as tokenizer.decode."
        )
    if callable(words):
        return Vocabulary(words, size=size)

    def known(number: int) -> str:
        return str(words[number]) if 0 <= number < len(words) else ""

    return Vocabulary(known, size=len(words))
