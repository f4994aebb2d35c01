"""Tokens: places, numbers, and what papers print."""

import pytest

from difflab.errors import ParseError
from difflab.language.lexer import TokenKind, clean_name, number, superscript, tokens


def spelled(text: str) -> list[tuple[str, str]]:
    return [(TokenKind(kind).name, text[start:end]) for kind, start, end in tokens(text)]


def test_every_token_has_its_place() -> None:
    assert list(tokens(" x1 <= 2.5 # end")) == [
        (TokenKind.NAME, 1, 3),
        (TokenKind.LESS_EQUAL, 4, 6),
        (TokenKind.NUMBER, 7, 10),
        (TokenKind.END, 16, 16),
    ]


@pytest.mark.parametrize("literal", ["0", "12", "1.", "1.5", ".5", "1e3", "1E-3", "1.5e+10", "00"])
def test_a_number_is_one_token_and_what_float_says(literal: str) -> None:
    assert spelled(literal)[0] == ("NUMBER", literal)
    assert float(number(literal, 0, len(literal))) == float(literal)


def test_integers_stay_exact() -> None:
    digits = "123456789012345678901234567890"
    assert number(digits, 0, 30) == 123456789012345678901234567890
    assert isinstance(number("2", 0, 1), int)
    assert isinstance(number("2.0", 0, 3), float)


@pytest.mark.parametrize("literal", ["1" * 308, "1.797e308", "5e-324", "0e999999", "0.000"])
def test_what_a_float64_holds_is_read(literal: str) -> None:
    assert float(number(literal, 0, len(literal))) == float(literal)


@pytest.mark.parametrize("literal", ["1e999", "1" * 310, "9" * 100_000, "1e-999", "1.8e308"])
def test_what_no_float64_holds_is_refused(literal: str) -> None:
    with pytest.raises(ParseError, match=r"too (large|small) for a float64"):
        number(literal, 0, len(literal))


@pytest.mark.parametrize(
    ("pasted", "plain"),
    [
        ("a×b·c⋅d∗e", "a*b*c*d*e"),
        ("a−b–c", "a-b-c"),
        ("a÷b∕c", "a/b/c"),
        ("a≤b", "a<=b"),
        ("a≥b", "a>=b"),
        ("a≠b", "a!=b"),
        ("a**b", "a^b"),
        ("a\xa0+\u2009b\u200b", "a+b"),
        ("\ufeffa", "a"),
    ],
)
def test_pasted_symbols_are_plain_ones(pasted: str, plain: str) -> None:
    assert [kind for kind, _, _ in tokens(pasted)] == [kind for kind, _, _ in tokens(plain)]


@pytest.mark.parametrize(
    ("written", "name"),
    [("x₁", "x1"), ("x₁₂", "x12"), ("xᵢ", "xi"), ("𝑥₁", "x1"), ("β", "β"), ("é_2", "é_2")],
)
def test_names_are_known_by_their_plain_spelling(written: str, name: str) -> None:
    assert spelled(written)[0] == ("NAME", written)
    assert clean_name(written, 0, len(written)) == name


def test_superscripts_are_no_part_of_a_name() -> None:
    assert spelled("x²y⁻¹") == [
        ("NAME", "x"),
        ("SUPERSCRIPT", "²"),
        ("NAME", "y"),
        ("SUPERSCRIPT", "⁻¹"),
        ("END", ""),
    ]
    assert superscript("⁻¹⁰", 0, 3) == (True, "10")


def test_lines_end_in_every_way_they_do_in_files() -> None:
    for ending in ("\n", "\r\n", "\r", "\u2028", "\n \n\t\n"):
        assert [kind for kind, _, _ in tokens(f"a{ending}b")] == [
            TokenKind.NAME,
            TokenKind.NEWLINE,
            TokenKind.NAME,
            TokenKind.END,
        ]


def test_blanks_at_the_end_cost_no_more_than_elsewhere() -> None:
    assert list(tokens(" " * 200_000)) == [(TokenKind.END, 200_000, 200_000)]


def test_a_number_of_a_vector_is_one_token() -> None:
    assert spelled("x[12]^y₁[0]") == [
        ("ELEMENT", "x[12]"),
        ("POWER", "^"),
        ("ELEMENT", "y₁[0]"),
        ("END", ""),
    ]
    for apart in ("x[1:]", "x[ 1]", "x [1]", "x[-1]", "x[i]", "x[" + "1" * 16 + "]"):
        assert spelled(apart)[0] == ("NAME", "x")
