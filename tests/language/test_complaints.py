"""Bad input: one clear message, the place, and what to write instead; never anything else."""

import string
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflab.errors import DifflabError, InputError, ParseError, ShapeError
from difflab.language import parse
from tests.support.rows import for_each

# Text, message, the piece that is marked, hint.
GOLDEN = [
    ("", "the text is empty", "", "write an expression, such as ln(x1) + x1*x2 - sin(x2)"),
    ("  \n", "the text is empty", "", "write an expression, such as ln(x1) + x1*x2 - sin(x2)"),
    (
        "# c",
        "there is no expression to compute",
        "",
        "write an expression, such as ln(x1) + x1*x2 - sin(x2)",
    ),
    ("foo(x)", "unknown function 'foo'", "foo", "did you mean 'floor'?"),
    ("sni(x)", "unknown function 'sni'", "sni", "did you mean 'sin'?"),
    ("Sin(x)", "unknown function 'Sin'", "Sin", "did you mean 'sin'?"),
    ("asinn(x)", "unknown function 'asinn'", "asinn", "did you mean 'asin'?"),
    ("sin(x,y)", "sin takes 1 argument, not 2", "sin(x,y)", None),
    ("sin()", "sin takes 1 argument, not 0", "sin()", None),
    ("sin( # none\n)", "expected an expression before ')'", ")", None),
    ("min(x)", "min takes at least 2 arguments, not 1", "min(x)", None),
    ("where(a,b)", "where takes 3 arguments, not 2", "where(a,b)", None),
    ("(x+1", "this '(' is never closed", "(", None),
    ("x+1)", "unmatched ')'", ")", None),
    ("2x", "an operator is missing between '2' and 'x'", "2x", "to multiply, write 2*x"),
    ("2(x)", "an operator is missing between '2' and '('", "2(", "to multiply, write 2*(…)"),
    (")(", "unmatched ')'", ")", None),
    ("(a)(b)", "an operator is missing between ')' and '('", ")(", "to multiply, write (…)*(…)"),
    ("x y", "an operator is missing between 'x' and 'y'", "x y", "to multiply, write x*y"),
    ("x[", "this '[' is never closed", "[", None),
    ("x: [4,,3]; x", "an integer is missing", ",", None),
    ("x: [3,]; x", "an integer is missing", "]", None),
    ("x: [3]; x[0,]", "too many indices for the shape [3]", "]", None),
    ("sin x", "'sin' is a function and needs an argument", "sin", "write sin(x)"),
    ("sin²(x)", "'sin' is a function and needs an argument", "sin", "write sin(x)²"),
    (
        "2 sin(x)",
        "an operator is missing between '2' and 'sin'",
        "2 sin",
        "to multiply, write 2*sin",
    ),
    ("3pi", "an operator is missing between '3' and 'pi'", "3pi", "to multiply, write 3*pi"),
    ("\x1b[31mx", "control character U+001B (escape)", "\x1b", "remove it"),
    ("x\x00", "control character U+0000 (null)", "\x00", "remove it"),
    ("x\u202ey", "control character U+202E (right-to-left override)", "\u202e", "remove it"),
    ("\ud800", "control character U+D800", "\ud800", "remove it"),
    (
        "a.b",
        "'.' is not part of the language",
        ".",
        "names contain letters, digits and _; a decimal point needs a digit beside it",
    ),
    ("__import__('os')", "unknown function '__import__'", "__import__", None),
    ("=cmd()", "'=' has no name to its left", "=", "write name = expression"),
    ("<script>", "expected an expression before '<'", "<", None),
    ("'a'", '"\'" is not part of the language', "'", "text in quotes is not part of the language"),
    ("x+", "the text ends where an expression is expected", "", None),
    ("x+*2", "expected an expression before '*'", "*", None),
    ("(x + ", "this '(' is never closed", "(", None),
    (
        "f(x)=x^2",
        "unknown function 'f'",
        "f",
        "write the formula alone, or f = …, without the arguments",
    ),
    ("a=1;a=2;a", "'a' is defined twice", "a", "use a new name for the new value"),
    ("x: [2]; x = 3", "'x' is defined twice", "x", "use a new name for the new value"),
    (
        "b=a+1;a=2;b",
        "'a' is used before it is defined",
        "a",
        "move the line that defines 'a' up",
    ),
    (
        "x+1; x: [3]",
        "an expression before the last line is not used",
        "x+1",
        "give it a name: a = …; for several outputs write [a, b] on the last line",
    ),
    ("a=a+1;a", "'a' is defined in terms of itself", "a", None),
    (
        "x[0]",
        "a scalar cannot be indexed",
        "[0",
        "an array input is declared by a line such as x: [100]",
    ),
    (
        "(x+1)[0]",
        "a scalar cannot be indexed",
        "[0",
        "an array input is declared by a line such as x: [100]",
    ),
    ("x:[3];x[5]", "index 5 is out of bounds for an axis of size 3", "5", None),
    ("x:[3];x[-4]", "index -4 is out of bounds for an axis of size 3", "-4", None),
    ("x:[3];x[]", "empty brackets", "[]", None),
    ("x:[3];x[2:1]", "this slice of an axis of size 3 is empty", "2:1", None),
    ("x:[3];x[::0]", "the step of a slice cannot be 0", "::0", None),
    ("x:[3];x[0,1]", "too many indices for the shape [3]", "1", None),
    (
        "x:[3];x[y]",
        "'y' is not an integer",
        "y",
        "only integers are allowed here: x[0], x[1:], x[::2], W[1, 2]",
    ),
    (
        "x:[3];x[0 1]",
        "'1' is not an integer",
        "1",
        "only integers are allowed here: x[0], x[1:], x[::2], W[1, 2]",
    ),
    ("x:[3];x[,0]", "an integer is missing", ",", None),
    ("x:[3];x[1.5]", "1.5 is not a valid index or size", "1.5", None),
    ("x:[3];x[-]", "expected an integer after the minus", "]", None),
    ("x:[0];x", "a size must be at least 1", "0", None),
    ("x:[-1];x", "a size must be at least 1", "-1", None),
    (
        "x:[a];x",
        "'a' is not an integer",
        "a",
        "only integers are allowed here: x[0], x[1:], x[::2], W[1, 2]",
    ),
    ("x:[3", "this '[' is never closed", "[", None),
    (
        "x:5",
        "a declaration needs a shape in brackets",
        "x:5",
        "write name: [100], name: [4, 3], or name: [] for a scalar",
    ),
    (
        "x:[99999999999999999999];x",
        "99999999999999999999 is not a valid index or size",
        "99999999999999999999",
        None,
    ),
    (
        "x:[999999,999999,999];x",
        "an array input holds at most 2^40 elements on 32 axes",
        "[999999,999999,999]",
        None,
    ),
    ("[]", "empty brackets", "]", None),
    ("[a,]", "expected an expression before ']'", "]", None),
    (
        "a,b",
        "a comma separates the arguments of a function or the outputs in [a, b]",
        ",",
        "for several outputs write [a, b]",
    ),
    (
        "(a,b)",
        "a comma separates the arguments of a function or the outputs in [a, b]",
        ",",
        "for several outputs write [a, b]",
    ),
    (
        "1,5",
        "a comma separates the arguments of a function or the outputs in [a, b]",
        ",",
        "write 1.5",
    ),
    ("sin=3", "'sin' is a function and cannot be assigned a value", "sin", "choose another name"),
    (
        "e=3",
        "'e' is the constant 2.71828… and cannot be assigned a value",
        "e",
        "choose another name",
    ),
    (
        "π = 4",
        "'π' is the constant 3.14159… and cannot be assigned a value",
        "π",
        "choose another name",
    ),
    ("and = 2", "expected an expression before 'and'", "and", None),
    (
        "gamma*x",
        "'gamma' is a function and needs an argument",
        "gamma",
        "write gamma(x); a variable needs another name, or a declaration: gamma: []",
    ),
    (
        "sin",
        "'sin' is a function and needs an argument",
        "sin",
        "write sin(x); a variable needs another name, or a declaration: sin: []",
    ),
    (
        "x^sin",
        "'sin' is a function and needs an argument",
        "sin",
        "write sin(x); a variable needs another name, or a declaration: sin: []",
    ),
    (
        "xⁿ⁻¹",
        "a superscript must be a number or a name",
        "ⁿ⁻¹",
        "write the exponent with ^, as in x^(n - 1)",
    ),
    ("1e999", "1e999 is too large for a float64, whose largest value is 1.797e308", "1e999", None),
    ("1e-999", "1e-999 is too small for a float64 and would become zero", "1e-999", None),
    ("a<b<c", "comparisons cannot be chained", "<", "write a < b and b < c"),
    ("@x", "expected an expression before '@'", "@", None),
    (
        "x: [3]; sum(x, [0], x)",
        "a list of integers must be the last argument of a call",
        ",",
        "close the parenthesis after it: )",
    ),
    (
        "x: [3]; reshape(x)",
        "reshape needs the shape in brackets",
        "reshape(x)",
        "write reshape(x, [2, 3])",
    ),
    ("x: [3]; det(x, [0])", "det takes 1 argument, not 2", "det(x, [0])", None),
    (
        "x: [3]; sum(x, [y])",
        "'y' is not an integer",
        "y",
        "only integers are allowed here: x[0], x[1:], x[::2], W[1, 2]",
    ),
    ("x: [3]; sum(x, [])", "empty brackets", "[]", None),
    ("x: [3]; sum(x, [0]", "this '(' is never closed", "(", None),
    ("dot(x)", "dot takes 2 arguments, not 1", "dot(x)", None),
    (
        "x: [3]; layer_norm(x, x, x, x)",
        "layer_norm takes 1 to 3 arguments, not 4",
        "layer_norm(x, x, x, x)",
        None,
    ),
    ("W: [2, 2]; slove(W, W)", "unknown function 'slove'", "slove", "did you mean 'solve'?"),
    ("x=[1,2\nx", "this '[' is never closed", "[", None),
    ("x=[]", "empty brackets", "]", None),
    ("scatter(a at 1, [2])", "'at' needs indices in brackets", "at", "write x at [0], y at [1:]"),
    (
        "x: [3]; take(x, [1] along x)",
        "'along' needs the number of an axis",
        "along",
        "write [2, 0] along 1",
    ),
    ("[a,b]+1", "unexpected '+' after a complete line", "+", "begin a new line, or write ;"),
    (
        "a+1\nb",
        "an expression before the last line is not used",
        "a+1",
        "give it a name: a = …; for several outputs write [a, b] on the last line",
    ),
    (
        "a\n[b,c]",
        "an expression before the last line is not used",
        "a",
        "give it a name: a = …; for several outputs write [a, b] on the last line",
    ),
    (
        "[a,b]\nc",
        "an expression before the last line is not used",
        "[a,b]",
        "give it a name: a = …; for several outputs write [a, b] on the last line",
    ),
    ("x==", "the text ends where an expression is expected", "", None),
    (
        "2=x",
        "only a name at the start of a line can be assigned a value",
        "=",
        "to compare, write ==",
    ),
    (
        "a+b=c",
        "only a name at the start of a line can be assigned a value",
        "=",
        "to compare, write ==",
    ),
    (
        "a:b",
        "a declaration needs a shape in brackets",
        "a:b",
        "write name: [100], name: [4, 3], or name: [] for a scalar",
    ),
    (
        "x=y:2",
        "a ':' declares an input or forms a slice, and is not allowed here",
        ":",
        "declare an input on a line of its own: x: [100]",
    ),
    ("x%2", "'%' is not part of the language", "%", "write mod(a, b)"),
    (
        "x!",
        "'!' is not part of the language",
        "!",
        "write not a, or a != b; for n! write gamma(n + 1)",
    ),
    ("|x|", "'|' is not part of the language", "|", "write abs(x), or a or b"),
    ("{x}", "'{' is not part of the language", "{", "write parentheses ( )"),
    ("x'", '"\'" is not part of the language', "'", "text in quotes is not part of the language"),
    ("(a\nb", "this '(' is never closed", "(", None),
    ("where(x>0, 1\ny=2", "this '(' is never closed", "(", None),
    ("[a,b", "this '[' is never closed", "[", None),
    ("(a;b)", "this '(' is never closed", "(", None),
    ("(a]", "']' does not match the '(' at character 1", "]", None),
    ("[a)", "')' does not match the '[' at character 1", ")", None),
    ("x]", "unmatched ']'", "]", None),
    ("[a,b] c", "unexpected 'c' after a complete line", "c", "begin a new line, or write ;"),
    ("x:[3] y", "unexpected 'y' after a complete line", "y", "begin a new line, or write ;"),
    ("x½", "'½' cannot be part of a name", "½", "names contain letters, digits and _"),
    ("₁x", "a name begins with a letter or _", "₁x", None),
    ("½", "'½' cannot be part of a name", "½", "names contain letters, digits and _"),
    ("∞", "'∞' (infinity) is not part of the language", "∞", None),
    (
        "a + not b",
        "'not' has lower precedence than the operator before it",
        "not",
        "write parentheses around it: (not …)",
    ),
    ("()", "empty parentheses", ")", None),
    ("sin(,)", "expected an expression before ','", ",", None),
    ("1..2", "an operator is missing between '1.' and '.2'", "1..2", "to multiply, write 1.*.2"),
    ("0x10", "an operator is missing between '0' and 'x10'", "0x10", "to multiply, write 0*x10"),
    ("if(x,1,2)", "unknown function 'if'", "if", "write where(condition, a, b)"),
    ("pow(x,2)", "unknown function 'pow'", "pow", "write a^b"),
    ("x é̂", "an operator is missing between 'x' and 'é'", "x é", "to multiply, write x*é"),
]


SHAPES = [
    ("x=[1,[2]]\nx", "a list has elements of one shape, not of [] and [1]", "[1,[2]]"),
    (
        "x: [3]; scatter(x, [5])",
        "scatter needs a place after every argument",
        "scatter(x, [5])",
    ),
    (
        "x: [3]; scatter(x at [1:], [5])",
        "an argument of the shape [3] at a place of the shape [4]",
        "scatter(x at [1:], [5])",
    ),
    (
        "scatter(a at [1], b at [1], [2])",
        "scatter has two numbers for one place",
        "scatter(a at [1], b at [1], [2])",
    ),
    (
        "x: [3]; put(x, [0, 1, 9], [4])",
        "put needs an index into the result for each of the 3 entries, and the result's shape; "
        "these are [0, 1, 9] and [4]",
        "put(x, [0, 1, 9], [4])",
    ),
    (
        "x: [3]; sum_in_order(x at [::2], x at [:3])",
        "sum_in_order needs a place for every term after each argument",
        "sum_in_order(x at [::2], x at [:3])",
    ),
]


@pytest.mark.parametrize(("text", "message", "marked"), SHAPES)
def test_parts_that_do_not_fit_are_marked(text: str, message: str, marked: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)] == marked


@for_each(("text", "message", "marked", "hint"), GOLDEN)
def test_mistakes_are_named_marked_and_answered(
    text: str, message: str, marked: str, hint: str | None
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert error.span is not None
    assert (error.message, text[slice(*error.span)], error.hint) == (message, marked, hint)


def test_the_whole_message() -> None:
    with pytest.raises(ParseError) as caught:
        parse("y = 3\ny + 2x1")
    assert caught.value.render() == (
        "an operator is missing between '2' and 'x1'\n"
        "line 2: y + 2x1\n"
        "            ^~~\n"
        "hint: to multiply, write 2*x1"
    )


def test_terminal_escapes_are_shown_and_not_sent() -> None:
    with pytest.raises(ParseError) as caught:
        parse("x + \x1b[2J")
    assert "\x1b" not in caught.value.render()
    assert "\\x1b[2J" in caught.value.render()


MEGABYTES: dict[str, Callable[[], str]] = {
    "printable": lambda: (
        np.random.default_rng(1)
        .choice(np.frombuffer(string.printable.encode(), np.uint8), 10_000_000)
        .tobytes()
        .decode()
    ),
    "letters": lambda: "a" * 10_000_000,
    "digits": lambda: "9" * 10_000_000,
    "openings": lambda: "(" * 10_000_000,
    "closings": lambda: ")" * 10_000_000,
    "calls": lambda: "sin(" * 2_500_000,
    "numbers": lambda: "1 " * 5_000_000,
    "raised": lambda: "²" * 10_000_000,
    "blank": lambda: " " * 10_000_000,
    "lines": lambda: "\n" * 10_000_000,
    "index": lambda: "x: [3]; x[" + "1" * 10_000_000,
    "unknown": lambda: "a" * 10_000_000 + "(x)",
}


@for_each("noise", MEGABYTES.values(), ids=MEGABYTES)
def test_ten_megabytes_of_noise_get_a_short_message(noise: Callable[[], str]) -> None:
    text = noise()
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert len(caught.value.render()) < 400


WORDS = "x y x1 pi e sin ln min where sum not and or 1 2.5 1e9 .5 √ ² ⁻¹ · é @ ** == < <="
PIECES = [*WORDS.split(), *"()[],;:=+-*/^#\n\r ", "x: [3]", "a = ", "x[0]", "[1:]"]


def assert_parses_or_complains(text: str) -> None:
    complaint = None
    try:
        parse(text)
    except InputError as error:
        complaint = error
    if complaint is not None:
        assert complaint.span is not None
        assert 0 <= complaint.span[0] <= complaint.span[1] <= len(text)
        assert len(complaint.render()) < 600


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_mixed_pieces_never_break_the_parser(text: str) -> None:
    assert_parses_or_complains(text)


@given(st.text(max_size=60))
def test_random_text_never_breaks_the_parser(text: str) -> None:
    assert_parses_or_complains(text)


@pytest.mark.parametrize("text", ["9^9^9^9", "9^9^9^9^9^9*x", "-9^-9^9^9"])
def test_towers_are_only_text(text: str) -> None:
    assert len(parse(text).graph) < 20


def test_errors_are_difflabs() -> None:
    assert issubclass(ParseError, DifflabError)
