"""Names with letters that the language does not have, and the names that stand for them.

Comes in: a text. Goes out: the words of it that have such letters, each with the plain name that a fix writes everywhere.

Worked example: `λ` becomes `lambda_`, `x̂` becomes `x_hat`, `θ₁` becomes `theta1` and `größe` becomes `grosse`; a name that the text
has already gets a `_` behind it. `2α` is a product, and `π` a number where nothing is called so. A word that looks like a name of
the text, as `А` of Cyrillic does like `A`, is meant as that name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from keyword import iskeyword

from tc_jupyter.diagnostics import Edit, Fix, Span

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ϵ": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ϑ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda_", "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "ο": "omicron", "π": "pi",
    "ρ": "rho", "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "ϕ": "phi", "χ": "chi", "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi",
    "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_OTHERS = {"∆": "Delta", "∂": "d", "∇": "grad", "ß": "ss", "ø": "o", "æ": "ae", "ı": "i", "ł": "l"}
_CYRILLIC = dict(zip("абвгдезийклмнопрстуфыэё", "abvgdeziiklmnoprstufyee", strict=True)) | {
    "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya", "ъ": "", "ь": "",
}  # fmt: skip
_ALIKE = str.maketrans("АВЕЅІЈКМНОРСТУХԜаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABESIJKMHOPCTYXWaeopcyxijshdqwABEZHIKMNOPTYXo")
"""Letters of Cyrillic and Greek that look like those of Latin, whatever their sound is."""
_LETTERS = GREEK | _OTHERS
_MARKS = {"\u0302": "_hat", "\u0303": "_tilde", "\u0304": "_bar", "\u0305": "_bar", "\u0307": "_dot", "\u20d7": "_vec"}
"""Marks over a single letter; over letters of words they say nothing."""
_NAME = r"(?<![\w\u0300-\u036f\u20d0-\u20ff∂∇∆])((?:\w|[\u0300-\u036f\u20d0-\u20ff∂∇∆])++)"
_DIMS = r"[ \t]*(?:\([^()\n]{0,200}\))?[ \t]*"
_MADE = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:float|double|half|bfloat|u?int|bool|char|short|long)\w*" + _DIMS + _NAME,
        _NAME + _DIMS + r"(?:[-+*]|min|max)?=(?!=)",
        r"\bdef[ \t]+" + _NAME,
        r"->[ \t]*\([ \t]*" + _NAME,
    )
)
"""Where a word is a parameter, is assigned, or is a result or a def."""
_LISTED = re.compile(r"(?<=[(,])[ \t]*" + _NAME + r"[ \t]*(?=[,)])")
_WORDS = re.compile(r"(?P<comment>(?:#|//)[^\n]*)|" + _NAME)
POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
PI = "3.141592653589793"


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is no name.

    Attributes:
        plain: what is written for it.
        factor: whether a number stands directly before it.
        known: whether it is a parameter, an index, or something that is assigned.
        alike: whether it looks like the plain name.
    """

    text: str
    plain: str
    span: Span
    factor: bool
    known: bool
    alike: bool

    @property
    def written(self) -> str:
        """What stands in its place."""
        return f"*{self.plain}" if self.factor else self.plain


@dataclass(frozen=True)
class Words:
    """All such words of a text; reserved words are those that every text has."""

    text: str
    reserved: frozenset[str] = frozenset()

    def at(self, start: int) -> Word | None:
        """The word whose first strange character is at `start`; `None` if there is none."""
        return self._by_letter.get(start)

    def fix(self, word: Word) -> Fix:
        """Writes the plain name wherever the word stands."""
        edits = (Edit(each.span, each.written) for each in self._by_text[word.text])
        return Fix(f"write `{word.plain}`", tuple(edits))

    def plainly(self, start: int, end: int) -> str:
        """A part of the text with plain names."""
        text = self.text[start:end]
        for place in range(end - 1, start - 1, -1):
            word = self._by_letter.get(place)
            if word and start <= word.span.start and word.span.end <= end:
                text = text[: word.span.start - start] + word.written + text[word.span.end - start :]
        return text

    @cached_property
    def _by_letter(self) -> dict[int, Word]:
        found = [each for several in self._by_text.values() for each in several]
        first = (next(i for i in range(each.span.start, each.span.end) if not self.text[i].isascii()) for each in found)
        return dict(zip(first, found, strict=True))

    @cached_property
    def _made(self) -> frozenset[str]:
        return frozenset(match.group(1) for pattern in _MADE for match in pattern.finditer(self.text))

    @cached_property
    def _known(self) -> frozenset[str]:
        """The words that are names of something; others may be meant as numbers."""
        return self._made | {match.group(1) for match in _LISTED.finditer(self.text)}

    @cached_property
    def _by_text(self) -> dict[str, list[Word]]:
        plain, found = dict[str, str](), dict[str, list[Word]]()
        taken = {*self.reserved, *(match.group() for match in re.finditer(r"\w+", self.text, re.ASCII))}
        meant = {name: alike for name, _, _ in self._strange() if (alike := self._alike(name, taken))}
        for name, span, factor in self._strange():
            if re.match(r"[ΣΠ](?:_|\Z)", name) and name not in self._made:
                continue  # the sign of a sum
            if name not in plain:
                plain[name] = meant.get(name) or self._plain(name, taken)
                taken.add(plain[name])
            known = name in self._known or name in meant
            found.setdefault(name, []).append(Word(name, plain[name], span, factor, known, name in meant))
        return found

    def _alike(self, name: str, taken: Container[str]) -> str | None:
        """The name of the text that looks the same, which the word is meant as; `None` where both are names of something."""
        alike = name.translate(_ALIKE)
        return alike if alike in taken and not {name, alike} <= self._made else None

    def _strange(self) -> Iterator[tuple[str, Span, bool]]:
        """The words with such letters, their places, and whether a number stands before them."""
        for match in _WORDS.finditer(self.text):
            start, whole = match.start(), match.group(2)
            if whole is None or whole.isascii():
                continue
            if whole in self._made and _is_part(whole[0]):  # also `σ²`
                yield whole, Span(start, match.end()), False
                continue
            for is_name, characters in groupby(whole, _is_part):
                part = "".join(characters)
                name = part.lstrip("0123456789")
                if is_name and not part.isascii():
                    yield name, Span(start + len(part) - len(name), start + len(part)), name != part
                start += len(part)

    def _plain(self, name: str, taken: set[str]) -> str:
        if name == "π" and name not in self._known:
            return PI
        plain = plain_name(name)
        while plain in taken:
            plain += "_"
        return plain


@lru_cache(1)
def words_of(text: str, reserved: frozenset[str] = frozenset()) -> Words:
    """The words of a text that are no names."""
    return Words(text, reserved)


def _is_part(char: str) -> bool:
    return char.isascii() or is_letter(char)


def is_letter(char: str) -> bool:
    """Whether a character is meant as part of a name: a letter, a mark over one, or an index below the line."""
    if char.isascii():
        return False
    form = unicodedata.decomposition(char)
    if form.startswith("<super>"):
        return False
    return char in _LETTERS or char.isalpha() or form.startswith("<sub>") or unicodedata.category(char) == "Mn"


def plain_name(word: str) -> str:
    """A name of letters, digits and `_` that reads like the word."""
    apart = unicodedata.normalize("NFKD", word.translate(POWERS).replace("-", ""))
    single = sum(unicodedata.category(char) != "Mn" and not char.isdigit() for char in apart) == 1
    parts = [
        _plain_letter(char, single)
        for char in unicodedata.normalize("NFKD", "".join(_LETTERS.get(c, c) for c in apart))
    ]
    plain = "".join(parts) or "x"
    # only `lambda` alone is a word of Python
    plain = re.sub(r"lambda_(?=.)", "lambda", plain)
    return f"{plain}_" if iskeyword(plain) else plain


def _plain_letter(char: str, single: bool) -> str:
    if char.isascii():
        return char
    if unicodedata.category(char) == "Mn":
        return _MARKS.get(char, "") if single else ""
    if char.lower() in _CYRILLIC:
        latin = _CYRILLIC[char.lower()]
        return latin.capitalize() if char.isupper() else latin
    last = unicodedata.name(char, "").lower().rpartition(" ")[2]
    return last if last.isalpha() and last.isascii() else f"u{ord(char):x}"
