"""Parser of LaTeX's mathematics, token by token, with an explicit stack of open frames."""

from __future__ import annotations

import re
from collections.abc import Collection

from difflab.interop.formats.latex.doubts import (
    CONDITIONALS,
    check_exponent,
    check_fraction,
    check_letters,
    check_number,
    check_word,
)
from difflab.interop.formats.latex.lexer import (
    ACCENTS,
    DELIMITERS,
    FONTS,
    GREEK,
    OPERATORS,
    RELATIONS,
    Token,
    commands,
    functions,
    read_subscript,
)
from difflab.interop.formats.latex.stack import (
    Frame,
    FrameKind,
    FrameStack,
    Operand,
    Rope,
    translation,
)
from difflab.interop.formats.latex.tables import chosen, listed

_STATEMENTS = {"aligned", "align", "align*", "equation", "equation*", "gather", "gather*", "split"}
_MATRICES = {"pmatrix", "bmatrix", "matrix"}
_CONTINUES = re.compile(r"(?:\s|&|\\q?quad|\\[,;:! ])*(?:[-+*/=]|\\cdot|\\times)")
_FRACTIONS = {"\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}
_WORDS = {"and": " and ", "or": " or "}
_REMAINDERS = {"\\bmod", "\\mod", "\\pmod"}


class LatexReader(FrameStack):
    """Translates LaTeX; `variables` are names that are variables, such as ``e``.

    Attributes
    ----------
    rope : list
        The translation.
    names : set of str
        The variables that were read.
    """

    def __init__(self, text: str, variables: Collection[str] = ()) -> None:
        super().__init__(text, variables)
        self.rope: Rope = []
        self.names: set[str] = set()
        self.targets: set[str] = set()
        self.environments: list[Token] = []

    def read(self) -> None:
        """Read everything.

        Raises
        ------
        ParseError
            It is not in the subset of LaTeX that is read; the error has the location.
        """
        while True:
            token = self.lexer.next(digit=self.top.kind is FrameKind.SINGLE)
            if token.kind == "end":
                break
            if self.top.kind is not FrameKind.FUNCTION or not self.before_argument(token):
                self._token(token)
            self.settle()
        self.end_factors(token)
        if len(self.frames) > 1:
            opener = self.top.opener
            self.fail(f"{opener.text} is not closed", opener)
        if self.environments:
            opener = self.environments[-1]
            self.fail(f"\\begin{{{opener.text}}} is not ended", opener)
        self._end_statement(token)

    # --- tokens ---------------------------------------------------------------------------

    def _token(self, token: Token) -> None:
        text = token.text
        if token.kind == "number":
            if self.top.last is not None:
                self.fail(
                    f"the number {text} follows a factor",
                    token,
                    "write x_2 for an index, x^2 for a power, 2 \\cdot x or 2x for a product",
                )
            check_number(self, token)
            self.operand(Operand([(text, token.start, token.end)]), token)
        elif text == "π":
            self._pi(token)
        elif token.kind == "letter":
            check_letters(self, token, in_table=self._in_table())
            self.name(text, token)
        elif text in OPERATORS or text in RELATIONS:
            self._operator(token)
        elif text in DELIMITERS and not (text == "|" and self.closes_bar()):
            self.bracket(token, *DELIMITERS[text])
        elif any(text == closer for closer, _ in DELIMITERS.values()) or text == "}":
            self.close(token, text, left=False)
        elif token.kind == "command":
            self._command(token)
        else:
            self._symbol(token)

    def _command(self, token: Token) -> None:
        word = token.text[1:]
        if token.text in _REMAINDERS:
            hint = "write \\operatorname{mod}(x, y)"
            self.fail("difflab reads the remainder as a function of two arguments", token, hint)
        elif word in GREEK and not (word in commands() and self._before_bracket()):
            self.name(word.removeprefix("var"), token)
        elif word in commands():
            self.open_function(commands()[word], token)
        elif word in FONTS:
            self._word(self.lexer.raw(token))
        elif word in ACCENTS:
            self.name(f"{self._accented(token)}_{word.removeprefix('wide')}", token)
        elif word in ("operatorname", "operatorname*"):
            raw = self.lexer.raw(token)
            name = functions().get(raw.text.strip())
            if name is None:
                self.fail(f"difflab has no function '{raw.text}'", raw)
            self.open_function(name, raw)
        elif token.text in _FRACTIONS:
            self._fraction(token)
        else:
            self._structure(token)

    def _structure(self, token: Token) -> None:
        text = token.text
        if text == "\\sqrt":
            self._root(token)
        elif text == "\\left":
            delimiter = self.lexer.next()
            if delimiter.text not in DELIMITERS:
                self.fail(f"\\left{delimiter.text} is no bracket that difflab reads", delimiter)
            self.bracket(delimiter, *DELIMITERS[delimiter.text], left=True)
        elif text == "\\right":
            delimiter = self.lexer.next()
            self.close(delimiter, delimiter.text, left=True)
        elif text == "\\pi":
            self._pi(token)
        elif text == "\\infty":
            self.operand(Operand([("(1/0)", token.start, token.end)]), token)
        elif text in ("\\neg", "\\lnot"):
            self.top.items.append((" not ", token.start, token.end))
        elif text == "\\begin":
            self._begin(self.lexer.raw(token))
        elif text == "\\end":
            self._end(self.lexer.raw(token))
        elif text == "\\\\":
            self._new_line(token)
        else:
            self.fail(
                f"{text} is not in the part of LaTeX that difflab reads",
                token,
                "docs/how-to/read-other-formats.md lists it",
            )

    def _symbol(self, token: Token) -> None:
        text = token.text
        if text == "{":
            self.open(token, self.finish_braces, "}")
        elif text == "^":
            self._exponent(token)
        elif text == "&":
            self._next_cell(token)
        elif text == ",":
            self._comma(token)
        elif text == "=":
            self._equals(token)
        elif text in ".;" and self._at_end():
            return
        elif text == "'":
            self.fail("a prime means a derivative, which difflab computes", token)
        elif text == "_":
            self.fail("a subscript follows a name", token, "write x_1^2, not x^2_1")
        else:
            self.fail(f"'{text}' is not in the part of LaTeX that difflab reads", token)

    # --- names ------------------------------------------------------------------------------

    def name(self, base: str, token: Token) -> None:
        """Read a name with its subscript as an operand."""
        name = base
        if self.top.kind is not FrameKind.SINGLE and self.lexer.peek().text == "_":
            name = read_subscript(self.lexer, base)
        where = (token.start, self.lexer.position if name != base else token.end)
        if name == "e" and name not in self.given:
            self.operand(Operand([("e", *where)]), token)
            return
        self.names.add(name)
        self.operand(Operand([(name, *where)], name=name, symbol=name), token)

    def _pi(self, token: Token) -> None:
        if "pi" not in self.given and self.lexer.peek().text != "_":
            self.operand(Operand([("pi", token.start, token.end)]), token)
        else:
            self.name("pi", token)

    def _before_bracket(self) -> bool:
        """Whether the argument of a function may follow."""
        return self.lexer.peek().text in ("(", "[", "{", "\\left")

    def _accented(self, token: Token) -> str:
        """Return the letter below an accent."""
        first = self.lexer.next()
        braces = first.text == "{"
        letter = self.lexer.next() if braces else first
        word = letter.text.removeprefix("\\")
        if not (letter.kind == "letter" or word in GREEK):
            self.fail(f"{token.text} is put on one letter", letter)
        if braces and (closing := self.lexer.next()).text != "}":
            self.fail(f"{token.text} is put on one letter", closing)
        return word

    def _word(self, raw: Token) -> None:
        """Read upright text: a function, a variable, or a word between cases."""
        word = raw.text.strip().rstrip(",.:")
        if word in _WORDS:
            self.end_factors(raw)
            self.top.items.append((_WORDS[word], raw.start, raw.end))
        elif self._in_table() and word.lower() in CONDITIONALS:
            if word in ("otherwise", "else", "elsewhere"):
                self.top.function = "otherwise"
        elif self._is_function(word):
            self.open_function(functions()[word], raw)
        else:
            check_word(self, raw, word)
            self.name(word, raw)

    def _is_function(self, word: str) -> bool:
        """Whether an upright word is a function: it has a command, or brackets follow."""
        if word in self.given or word not in functions():
            return False
        return self._before_bracket() or (word in commands() and len(word) > 1)

    # --- operators ------------------------------------------------------------------------

    def _operator(self, token: Token) -> None:
        if self.top.kind is FrameKind.FACTORS and token.text in ("/", "\\div"):
            name = self.top.opener
            hint = f"put the argument of {name.text} in brackets, or write \\frac"
            self.fail(f"what '/' divides is ambiguous behind {name.text}", token, hint)
        if self.top.kind is FrameKind.FACTORS and self.top.last is None:
            name = self.top.opener
            self.fail(f"the argument of {name.text} is missing", token, "put it in brackets")
        self.end_factors(token)
        if self.top.kind is FrameKind.SINGLE:
            self.fail("a sign or an operator needs braces here", token, "write ^{-1}, not ^-1")
        text = RELATIONS.get(token.text) or OPERATORS[token.text]
        self.top.divided = text == "/"
        shown = f" {text} " if text in "+-" and self.top.last is not None else text
        self.top.items.append((shown, token.start, token.end))

    def _equals(self, token: Token) -> None:
        self.end_factors(token)
        top = self.top
        if top.kind is FrameKind.TABLE:
            top.items.append(("==", token.start, token.end))
            return
        first = top.items[0] if top.items else None
        if top.kind is not FrameKind.STATEMENTS or top.function:
            self.fail("'=' defines a name, once in a line", token)
        if not (isinstance(first, Operand) and first.name and len(top.items) in (1, 3)):
            hint = "write y = … or f(x) = …; difflab solves no equations"
            self.fail("a name is expected before '='", token, hint)
        top.function = first.name
        self.names.discard(first.name)
        self.targets.add(first.name)
        self.rope.append([first.rope, (" = ", token.start, token.end)])
        top.items.clear()

    def _comma(self, token: Token) -> None:
        self.end_factors(token)
        if self.top.kind is FrameKind.GROUP and self.top.closer != "}":
            self.top.commas += 1
            self.top.divided = False
            self.top.items.append((", ", token.start, token.end))
        elif self.top.kind not in (FrameKind.TABLE, FrameKind.STATEMENTS) or not self._at_end():
            self.fail("a comma separates the arguments of a function in brackets", token)

    def _at_end(self) -> bool:
        """Whether a line or a cell ends here."""
        return self.lexer.peek().text in ("", "&", "\\\\", "\\end")

    def _exponent(self, token: Token) -> None:
        base = self.top.last
        if base is None:
            self.fail("a power needs a base", token)
        if base.powered:
            self.fail("two exponents on one base", token, "write {x^a}^b or x^{a^b}")

        def finish(frame: Frame) -> None:
            check_exponent(self, token, base, frame)
            where = (token.start, token.end)
            if base.rope[0][0] == "e" and len(base.rope) == 1 and not base.name:
                base.rope = [("exp(", *base.rope[0][1:]), self.content(frame), (")", *where)]
            else:
                base.rope = [[*base.rope], ("^", *where), self.atom(frame)]
            base.powered, base.name, base.inner = True, "", None

        self.argument(token, finish)

    # --- fractions and roots --------------------------------------------------------------

    def _fraction(self, token: Token) -> None:
        where = (token.start, token.end)

        def above(numerator: Frame) -> None:
            def below(denominator: Frame) -> None:
                check_fraction(self, token, numerator, denominator)
                parts = [self.atom(numerator), ("/", *where), self.atom(denominator)]
                self.operand(Operand([("(", *where), *parts, (")", *where)]), token)

            self.argument(token, below)

        self.argument(token, above)

    def _root(self, token: Token) -> None:
        where = (token.start, token.end)
        degree: Rope = []

        def finish(frame: Frame) -> None:
            root = translation(degree).text
            if root in ("", "2", "3"):
                name = "cbrt" if root == "3" else "sqrt"
                rope = [(f"{name}(", *where), self.content(frame), (")", *where)]
            else:
                rope = [("(", *where), self.atom(frame), ("^(1/", *where), degree]
                rope.append(("))", *where))
            self.operand(Operand(rope), token)

        def keep(frame: Frame) -> None:
            degree.extend(self.atom(frame))
            self.argument(token, finish)

        if self.lexer.peek().text == "[":
            self.open(self.lexer.next(), keep, "]")
        else:
            self.argument(token, finish)

    # --- lines and tables -----------------------------------------------------------------

    def _in_table(self) -> bool:
        return any(frame.kind is FrameKind.TABLE for frame in self.frames)

    def _begin(self, name: Token) -> None:
        if name.text in _STATEMENTS and len(self.frames) == 1:
            self.environments.append(name)
            return
        tables = {"cases": chosen, "dcases": chosen, **dict.fromkeys(_MATRICES, listed)}
        if name.text not in tables:
            self.fail(f"difflab does not read the environment {name.text}", name)
        combine = tables[name.text]

        def finish(frame: Frame) -> None:
            self.operand(Operand(combine(self, frame)), name)

        self.frames.append(Frame(FrameKind.TABLE, name, finish, name.text))
        self.top.rows.append([])

    def _end(self, name: Token) -> None:
        self.end_factors(name)
        if self.top.kind is FrameKind.TABLE and self.top.closer == name.text:
            self._keep_cell(name)
            frame = self.frames.pop()
            frame.finish(frame)
        elif self.environments and self.environments[-1].text == name.text and not self.frames[1:]:
            self.environments.pop()
        else:
            self.fail(f"\\end{{{name.text}}} ends nothing that has begun", name)

    def _new_line(self, token: Token) -> None:
        self.end_factors(token)
        if self.top.kind is FrameKind.TABLE:
            self._keep_cell(token)
            self.top.rows.append([])
        elif self.top.kind is not FrameKind.STATEMENTS:
            self.fail(f"{self.top.opener.text} is not closed in this line", self.top.opener)
        elif not _CONTINUES.match(self.text, self.lexer.position):
            self._end_statement(token)

    def _next_cell(self, token: Token) -> None:
        self.end_factors(token)
        if self.top.kind is FrameKind.TABLE:
            self._keep_cell(token)
        elif self.top.kind is not FrameKind.STATEMENTS or not self.environments:
            self.fail("'&' separates the cells of cases and matrices", token)

    def _keep_cell(self, token: Token) -> None:
        """Move the operands so far into the last row of the table."""
        top = self.top
        cell = Frame(FrameKind.GROUP, token, top.finish, function=top.function)
        cell.items, top.items, top.function = top.items, [], ""
        if cell.items or cell.function:
            top.rows[-1].append(cell)

    def _end_statement(self, token: Token) -> None:
        top = self.top
        if top.items:
            self.rope.append([*top.rope, ("; ", token.start, token.end)])
        elif top.function:
            self.fail(f"nothing is assigned to {top.function}", token)
        top.items, top.function, top.divided = [], "", False
