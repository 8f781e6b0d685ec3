"""Names, bodies, properties and client ids may contain markup: nothing of it is executed.

Every output of every template is rendered with drawn strings, and must leave the elements and the
names of attributes as they are with a harmless word, and show the string itself.
"""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import mqlake.console
from mqlake.console.page import environment

TEMPLATES = Path(mqlake.console.__file__).parent / "templates"
STATIC = Path(mqlake.console.__file__).parent / "static"
NAMES = sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html"))
STRINGS = 10_000

PARTS = (
    *("<script>alert(1)</script>", "</script>", "<img src=x onerror=alert(1)>", "</td></table>"),
    *('"', "'", "`", "&", "&lt;", "&#60;", "<", ">", "<!--", "-->", "]]>", "{{ 7 * 7 }}", "{%"),
    *('" onmouseover="alert(1)', "' autofocus onfocus='alert(1)", "javascript:alert(1)", "=", " "),
    *(
        "\0",
        "\x01",
        "\x1b[31m",
        "\r",
        "\n",
        "\u2028",
        "\u202e",
        "\ufeff",
        "\ufffe",
        "日本",
        "\U0001f600",
    ),
    *("</textarea>", "</title>", "<svg/onload=alert(1)>", "<base href=//evil.example>", "hx-get=x"),
)

_STATEMENT = re.compile(r"\{%-?.*?-?%\}|\{#.*?#\}", re.DOTALL)
_OUTPUT = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_MACRO_CALL = re.compile(r"[\w.]+\([^|]*\)", re.DOTALL)
_ADDRESS = re.compile(r'\b(?:href|src|action|hx-get|formaction)="\{\{\s*([^}]*?)\s*\}\}')
_SAFE_ADDRESSES = re.compile(
    r"\"/[^\"]*\" \| url\(.*\)|section\.path|page_url\(.*\)|\w+\.(?:url|link)"
    # What handlers make with `url`, or take from a table of their own.
    r"|url|here|later|url_here|address|link|tab"
)


class Skeleton(HTMLParser):
    """The elements of a page, and the texts and values in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.texts += [value or "" for _, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("/" + tag, ()))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("!--", ()))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def flat(name: str) -> str:
    """Return a template without its statements, whose outputs all are one variable."""
    source = _STATEMENT.sub(" ", (TEMPLATES / name).read_text())
    return _OUTPUT.sub(
        lambda match: "" if _MACRO_CALL.fullmatch(match[1]) else "{{ hostile }}", source
    )


def skeleton(text: str) -> Skeleton:
    found = Skeleton()
    found.feed(text)
    found.close()
    return found


def drawn(dice: random.Random) -> str:
    return "".join(dice.choice(PARTS) for _ in range(dice.randint(1, 6)))


@pytest.mark.parametrize("name", NAMES)
def test_drawn_strings_change_no_element(name: str) -> None:
    template = environment().from_string(flat(name))
    wanted = skeleton(template.render(hostile="word"))
    dice = random.Random(f"console {name}")
    for _ in range(-(-STRINGS // len(NAMES))):
        text = drawn(dice)
        found = skeleton(template.render(hostile=text))
        assert found.elements == wanted.elements, repr(text)
        shown = "".join(found.texts)
        counted = "".join(wanted.texts).count("word")
        assert shown.count(text) >= min(counted, 1), repr(text)


def test_attributes_of_macros_keep_drawn_strings_inside() -> None:
    source = '{% import "macros.html" as m %}<div {{ m.live(hostile, hostile) }}></div>'
    template = environment().from_string(source)
    wanted = skeleton(template.render(hostile="word"))
    dice = random.Random("console macros")
    for _ in range(500):
        assert skeleton(template.render(hostile=drawn(dice))).elements == wanted.elements


@pytest.mark.parametrize("name", NAMES)
def test_addresses_begin_with_a_path_of_the_console(name: str) -> None:
    for expression in _ADDRESS.findall((TEMPLATES / name).read_text()):
        assert _SAFE_ADDRESSES.fullmatch(expression), expression


@pytest.mark.parametrize("name", NAMES)
def test_templates_have_no_way_around_the_escapes(name: str) -> None:
    source = (TEMPLATES / name).read_text()
    for word in ("|safe", "| safe", "autoescape", "Markup", "javascript:", "<style", "hx-on"):
        assert word not in source
    assert not re.search(r"\son[a-z]+\s*=", source), "a script in an attribute"
    assert not re.search(r"\sstyle\s*=", source), "a style in an attribute"
    assert not re.search(r"<script(?![^>]*\ssrc=)", source), "an inline script"
    assert not re.search(r"\s[\w-]+=\{\{", source), "an attribute without quotes"


def test_every_value_is_escaped_by_default() -> None:
    assert environment().autoescape is True


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_scripts_insert_no_markup(path: Path) -> None:
    source = path.read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in source
    assert "new Function" not in source
