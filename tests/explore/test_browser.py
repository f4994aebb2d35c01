"""The page in Chromium: steps, seeds, sliders, keys, the address, links between its parts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from difflab.explore.shown import explore
from difflab.language import parse
from tests.support.browser import chromium, new_page

Opened = Callable[..., Any]
BAYDIN = ("ln(x1) + x1*x2 - sin(x2)", {"x1": 2.0, "x2": 5.0})
KINKED = ("where(x > 0, sqrt(x), 0) + abs(y)", {"x": 0.0, "y": 0.0})


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, (text, at) in {"baydin": BAYDIN, "kinked": KINKED}.items():
        parse(text).explore(at).save(folder / f"{name}.html")
    terms = "+".join(f"x[{i % 50}]*sin(x[{7 * i % 50}] + {i})" for i in range(2500))
    large = explore(parse(f"x: [50]; {terms}"), {"x": [0.5] * 50}, verdicts=False)
    large.save(folder / "large.html")
    return folder


@pytest.fixture
def opened(browser: Any, files: Path) -> Iterator[Opened]:
    pages: list[Any] = []
    problems: list[str] = []

    def open_page(name: str, hash: str = "", **options: Any) -> Any:
        page = new_page(browser, **options)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        asked: list[str] = []
        page.goto((files / f"{name}.html").as_uri() + hash)
        assert [url.partition("#")[0] for url in asked] == [(files / f"{name}.html").as_uri()]
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert problems == []


def count(page: Any) -> str:
    return str(page.inner_text("#count"))


def test_steps_by_buttons_and_slider(opened: Opened) -> None:
    page = opened("baydin")
    assert count(page) == "step 7 of 7"
    page.click("#first")
    assert count(page) == "step 1 of 7"
    page.click("#next")
    page.click("#next")
    assert "v₁ = ln x1 = ln 2 = 0.693147" in page.inner_text("#say")
    assert page.inner_text("#formula .now") == "ln(x1)"
    page.fill("#step", "4")
    assert "v₃ = sin x2 = sin 5" in page.inner_text("#say")
    assert page.inner_text("#code .now") == "const v3 = sin(x2);"


def test_reverse_mode_shows_contributions_at_fan_out(opened: Opened) -> None:
    page = opened("baydin", "#mode=reverse")
    assert count(page) == "step 1 of 9"
    page.click("#last")
    said = page.inner_text("#say")
    assert "= 5.5" in said
    assert "used 2 times" in said
    assert "5.5" in page.inner_text("#paths .total")
    lines = page.locator("#paths .path span.mono").all_inner_texts()
    assert sorted(lines) == ["0.5", "5", "5.5"]


def test_forward_mode_with_a_chosen_seed(opened: Opened) -> None:
    page = opened("baydin", "#mode=forward")
    page.select_option("#seed", label="x2")
    page.click("#last")
    assert "1.71634" in page.inner_text("#say")
    assert "seed=x2" in page.url
    page.press("body", "s")
    assert "5.5" in page.inner_text("#trace .row:last-child")


def test_keys_alone_are_enough(opened: Opened) -> None:
    page = opened("baydin")
    page.press("body", "Home")
    page.press("body", "ArrowRight")
    assert count(page) == "step 2 of 7"
    page.press("body", "3")
    assert count(page) == "step 1 of 9"
    page.press("body", "End")
    assert count(page) == "step 9 of 9"
    page.press("body", "ArrowLeft")
    assert count(page) == "step 8 of 9"
    page.press("body", "Home")
    page.clock.install()
    page.press("body", " ")
    page.clock.run_for(2000)  # milliseconds; a step takes 900
    page.press("body", " ")
    assert "Play" in page.inner_text("#play")
    page.clock.run_for(2000)
    page.focus("#input-0")
    page.keyboard.press("ArrowUp")  # belongs to the field: another point, the same step
    assert page.input_value("#input-0") == "3"
    assert count(page) == "step 3 of 9"


def test_another_point_recomputes_everything(opened: Opened) -> None:
    page = opened("baydin")
    page.fill("#input-0", "4")
    result = page.inner_text("#result")
    assert "22.3452186357" in result  # ln 4 + 20 - sin 5
    assert "5.25" in result
    assert "at=4,5" in page.url
    assert "not at the point" in page.inner_text("#verdicts")
    slider = page.locator("#point input[type=range]").nth(1)
    slider.fill("0")
    assert page.input_value("#input-1") == "0"


def test_the_address_holds_the_state(opened: Opened) -> None:
    page = opened("baydin", "#mode=reverse&step=4&at=1,0&h=-3")
    assert count(page) == "step 4 of 9"
    assert page.input_value("#input-0") == "1"
    assert "h = 0.001" in page.inner_text("#difference")
    page.press("body", "ArrowRight")
    assert "step=5" in page.url
    page.evaluate("location.hash = '#mode=forward&step=2&seed=x2'")
    page.get_by_text("step 2 of 7").wait_for()
    for wrong in ("#mode=none&step=-4&seed=zz&at=a,b", "#step=99999&h=1e9", "#%%%"):
        assert "of" in count(opened("baydin", wrong))


def test_the_difference_is_near_the_exact_derivative(opened: Opened) -> None:
    page = opened("baydin")
    page.fill("#h", "-5")
    assert "5.5, error" in page.inner_text("#difference p")
    assert page.locator("#difference polyline").count() == 2
    page.fill("#h", "-16")
    assert "error 1" in page.inner_text("#difference p")


def test_pointing_lights_the_others(opened: Opened) -> None:
    page = opened("baydin")
    page.hover("#code .row >> nth=4")
    lit = page.evaluate("[...document.querySelectorAll('.lit')].map((e) => e.textContent)")
    assert "sin(x2)" in lit
    assert any("sin x2" in text for text in lit)
    assert page.locator("svg .box.lit").count() == 1
    page.click("svg .box.lit")
    assert "v₃" in page.inner_text("#say")


def test_kinks_and_branches_are_shown_where_they_happen(opened: Opened) -> None:
    page = opened("kinked")
    assert page.locator("svg .warning text", has_text="kink").count() == 2
    assert page.locator("svg .wire.untaken").count() == 1
    assert "convention" in page.inner_text("#verdicts")
    page.fill("#input-0", "4")
    assert page.locator("svg .wire.untaken").count() == 1  # now the other branch
    assert page.locator("#paths .path").count() == 2  # one path and the sum
    assert "Not listed: 0" not in page.inner_text("#paths")
    page.fill("#input-0", "-4")
    assert page.locator("#paths .path").count() == 1
    assert "Not listed: 1 with a slope of 0" in page.inner_text("#paths")


def test_ten_thousand_operations(opened: Opened) -> None:
    page = opened("large", "#mode=reverse&step=5000")
    assert count(page).startswith("step 5000 of ")
    assert page.locator("svg .box").count() < 60
    assert page.locator("#trace .row").count() < 200
    page.press("body", "ArrowRight")
    assert "step 5001" in count(page)


def test_a_loop_is_followed_for_the_turns_that_the_page_says(opened: Opened, files: Path) -> None:
    """8 is halved three times; the two turns beyond are not taken, and 33 needs more."""
    loop = parse("iterate(y = x; while y > 1; y/2)")
    explore(loop, {"x": 8.0}, verdicts=False).save(files / "loop.html")
    page = opened("loop")
    assert "up to 5 turns" in page.inner_text("#key")
    assert page.locator("svg .wire.untaken").count() == 6  # one of each selection
    for x, value, slope in (("8", "1", "0.125"), ("32", "1", "0.03125"), ("33", "NaN", "0")):
        page.fill("#input-0", x)
        assert page.locator("#result td").all_inner_texts() == [value, slope]


def test_sorting_follows_the_elements(opened: Opened, files: Path) -> None:
    function = parse("x: [3]; sort(x)*[1, 10, 100]")
    explore(function, {"x": [3.0, 1.0, 2.0]}, verdicts=False).save(files / "sort.html")
    page = opened("sort")
    assert page.locator("svg .warning", has_text="kink").count() == 0
    cells = page.locator("#result td").all_inner_texts
    assert cells()[:3] == ["1", "20", "300"]
    page.fill("#input-0", "0")
    assert cells()[:3] == ["0", "10", "200"]
    page.fill("#input-1", "2")
    assert page.locator("svg .warning", has_text="kink").count() > 0


ODD = {
    "x": {"x": 3.0},
    "[x, 3, x*y, y > 1]": {"x": 1.0, "y": 2.0},
    "θ·α₁² − √(θ)": {"θ": 0.5, "α1": 2.0},
    "W: [2, 2]; x: [2]\ns = W @ x\nrelu(s)": {"W": [[1.0, -1.0], [0.5, 2.0]], "x": [0.3, 0.7]},
    "1/x + log(x) + x*0": {"x": -0.0},
    "x^y + mod(x, y) + round(x) + erf(x) + clip(y, 0, x)": {"x": 2.5, "y": 1.5},
    "a = x*x\nb = a*a\nb - x # overflows": {"x": 1e200},
    "constructor + __proto__*toString": {"constructor": 1.0, "__proto__": 2.0, "toString": 3.0},
}


@pytest.mark.parametrize("program", ODD)
def test_odd_functions_are_stepped_to_the_end(opened: Opened, files: Path, program: str) -> None:
    function = parse(program)
    explore(function, ODD[program], verdicts=False).save(files / "odd.html")
    page = opened("odd")
    for key in "123":
        page.press("body", key)
        page.press("body", "Home")
        steps = int(count(page).split()[-1])
        for _ in range(steps - 1):
            page.press("body", "ArrowRight")
        assert count(page) == f"step {steps} of {steps}"
        page.press("body", "s")
    shown = page.locator("#result td").all_inner_texts()
    assert len(shown) == function.m + function.n


def test_colours_follow_the_scheme_and_paper_is_light(opened: Opened) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    page = opened("baydin", color_scheme="dark")
    assert page.evaluate(paper) == "rgb(13, 17, 23)"
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.locator("#handout table").count() == 4
    assert page.locator("#handout").is_visible()
    assert not page.locator(".bar").is_visible()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_is_wider_than_the_window(opened: Opened, width: int) -> None:
    page = opened("baydin", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_sandboxed_frame_as_in_a_notebook(browser: Any) -> None:
    shown = parse(BAYDIN[0]).explore(BAYDIN[1])._repr_html_()
    page = new_page(browser)
    page.set_content(shown)
    frame = page.frame_locator("iframe")
    frame.locator("#first").click()
    assert frame.locator("#count").inner_text() == "step 1 of 7"
    page.close()
