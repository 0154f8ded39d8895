"""A saved notebook that is merely opened asks nobody for anything, covers nothing and answers at once, whatever its outputs say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser_app import App

from tc_jupyter import analyze
from tc_jupyter.notebook.card import html_card

MIME = "application/vnd.tc-jupyter.v1+json"
COVER = "inset:0;left:0;top:0;width:9999px;height:9999px;z-index:99999;background:red"
URL = "http://canary.invalid/x"

STYLES = {
    "image-set": f"background-image:image-set('{URL}' 1x)",
    "image-set in background": f"background:image-set('{URL}' 1x)",
    "escaped url": "background:u\\72l(" + URL + ")",
    "variable": f"--a:image-set('{URL}' 1x);background:var(--a)",
    "cursor": f"cursor:image-set('{URL}' 1x), auto",
    "list": f"list-style-image:image-set('{URL}' 1x);display:list-item",
    "border": f"border:9px solid;border-image:image-set('{URL}' 1x) 1",
    "mask": f"mask-image:image-set('{URL}' 1x);width:9px;height:9px",
    "content": f"content:image-set('{URL}' 1x)",
    "fixed": f"position/**/:fixed;{COVER}",
    "fixed in capitals": f"POSITION:FIXED;{COVER}",
    "sticky": f"position:sticky;{COVER}",
    "margin": f"margin:-900px;{COVER}",
    "transform": f"transform:translate(-900px,-900px) scale(50);{COVER}",
    "translate": f"translate:-500px -500px;scale:9;{COVER}",
    "shadow": "box-shadow:0 0 0 9999px red;width:1px;height:1px",
    "outline": "outline:9999px solid red;width:1px;height:1px",
    "float": f"float:left;{COVER}",
}
ELEMENTS = {
    "image": f'<img src="{URL}" srcset="{URL} 1x">',
    "relative image": '<img src="/files/canary">',
    "use": f'<svg><use href="{URL}#a"/><use xlink:href="{URL}#b"/></svg>',
    "drawing": f'<svg><image href="{URL}"/><rect width="9" height="9" fill="url({URL}#a)" style="filter:url({URL}#f)"/></svg>',
    "feImage": f'<svg><filter id="f"><feImage href="{URL}"/></filter><rect filter="url(#f)" width="9" height="9"/></svg>',
    "style": f'<style>body{{background:url({URL})}}</style><link rel="stylesheet" href="{URL}"><link rel="prefetch" href="{URL}">',
    "meta": f'<meta http-equiv="refresh" content="0;url={URL}"><base href="{URL}">',
    "frames": f'<iframe src="{URL}" srcdoc="<img src={URL}>"></iframe><object data="{URL}"></object><embed src="{URL}">',
    "media": f'<audio src="{URL}" autoplay></audio><video src="{URL}" poster="{URL}"></video><input type="image" src="{URL}">',
    "background": f'<table background="{URL}"><tr><td background="{URL}">x</td></tr></table>',
    "script": f'<script>fetch("{URL}")</script><svg onload="fetch(\'{URL}\')"><a href="{URL}" ping="{URL}">x</a></svg>',
    "classes of the page": '<div class="jp-Dialog lm-Menu" style="display:block">x</div>',
    "commands of the page": '<a data-commandlinker-command="application:close-all" href="#">x</a>',
    "deep": "<div>" * 40_000 + "x",
    "wide": "<i>x</i>" * 60_000,
    "markers in markers": "<svg>"
    + "".join(
        f'<marker id="tc-m{n}" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" overflow="visible">'
        f'<polyline points="{"1,1 2,2 " * 30}" stroke="red" marker-mid="url(#tc-m{n + 1})"/></marker>'
        for n in range(5)
    )
    + f'<polyline points="{"1,1 2,2 " * 30}" stroke="red" marker-mid="url(#tc-m0)"/></svg>',
    "clips in clips": "<svg>"
    + "".join(
        f'<clipPath id="tc-c{n}">' + f'<rect width="9" height="9" clip-path="url(#tc-c{n + 1})"/>' * 60 + "</clipPath>"
        for n in range(5)
    )
    + '<rect width="9" height="9" clip-path="url(#tc-c0)"/></svg>',
}
TERMS = " + ".join(["N"] * 4000)


def analysis_of(text: str) -> dict[str, Any]:
    return {"functions": [{"name": "f", "sizes": ["N"], "preconditions": [
        {"text": text, "status": "checked_at_call", "kind": "SIZE", "subject": "access"} for _ in range(300)
    ]}]}  # fmt: skip


def conditions(count: int) -> list[dict[str, str]]:
    return [
        {"text": f"K <= {n}", "status": "checked_at_call", "kind": "SIZE", "subject": "access"} for n in range(count)
    ]


def functions(count: int, each: int) -> dict[str, Any]:
    return {"functions": [{"name": f"f{n}", "sizes": ["K"], "preconditions": conditions(each)} for n in range(count)]}


def numbered(name: str) -> str:
    attributes = " ".join(f'{name}{n}="1"' for n in range(30_000))
    return f"<i {attributes}>x</i>"


def drawing(inner: str) -> dict[str, str]:
    return {"html": f'<svg width="800" height="800">{inner}</svg>'}


CORNERS = " ".join(f"{n * 7919 % 800} {n * 104729 % 800}" for n in range(200_000))
MARKS = "\u0301" * 100_000
DATA = {
    "many attributes": {"html": numbered("a")},
    "many attributes of ours": {"html": numbered("data-tc")},
    "many marks over a letter": {"html": "a" + MARKS},
    "many marks in a title": {"title": "a" + MARKS, "html": "x"},
    "many marks in a text": {"text": "a" + MARKS, "functions": []},
    "many marks in many elements": {"html": "<i>" + MARKS[:400].join(["</i><i>"] * 250)},
    "Thai without a space": {"html": "\u0e33" * 20_000},
    "Thai without a space in a name": analysis_of("\u0e33" * 20_000),
    "a letter in each line": {"html": f'<p style="width:1px;word-break:break-all">{"a" * 1_900_000}</p>'},
    "many ruby texts": {"html": f'<p style="display:ruby">{"<b style=display:ruby-text>x</b>" * 20_000}</p>'},
    "an outline with many corners": drawing(f'<path d="M{CORNERS}"/>'),
    "a line with many corners": drawing(f'<polyline points="{CORNERS}" stroke="red" stroke-width="50"/>'),
    "many dashes": drawing('<circle r="1e5" fill="none" stroke="red" stroke-dasharray="1"/>' * 2000),
    "many half transparent drawings": {
        "html": '<svg width="3000" height="3000">'
        + '<g opacity=".5"><rect width="3000" height="3000"/><circle r="9"/></g>' * 15_000
    },
    "many conditions": functions(1, 20_000),
    "many functions": functions(500, 40),
    "many long conditions": analysis_of(f"{TERMS} <= 3"),
    "large numbers": analysis_of("9" * 5000 + " * " + "9" * 5000 + " <= N"),
    "deep conditions": analysis_of("(" * 50_000 + "N" + ")" * 50_000),
    "deep data": {"functions": json.loads("[" * 300 + "]" * 300)},  # JupyterLab itself does not open 900 levels
    "wide data": {"functions": [{"name": f"f{n}"} for n in range(3000)]},
}


def cell(data: dict[str, Any], number: int) -> dict[str, Any]:
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: data, "text/plain": "plain"}}
    return {
        "cell_type": "code",
        "id": f"c{number}",
        "metadata": {},
        "source": "",
        "execution_count": 1,
        "outputs": [output],
    }


def opened(app: App, cells: list[dict[str, Any]]) -> None:
    app.open(app.server.notebook("hostile.ipynb", cells))
    app.page.wait_for_selector("[data-tc-card]", state="attached")


def assert_harmless(app: App) -> None:
    asked = [url for url in app.requests if "canary" in url]
    assert asked == []
    covered = app.page.evaluate(
        """() => {
            const places = ['.jp-NotebookPanel-toolbar', '#jp-top-panel', '#jp-left-stack'];
            return places.filter(place => {
                const box = document.querySelector(place)?.getBoundingClientRect();
                if (!box || box.width === 0) return false;
                for (const part of [0.1, 0.5, 0.9]) {
                    const there = document.elementFromPoint(box.left + box.width * part, box.top + box.height / 2);
                    if (there?.closest('[data-tc-card]')) return true;
                }
                return false;
            });
        }"""
    )
    assert covered == []


@pytest.mark.parametrize("kind", ["styles", "elements"])
def test_an_opened_notebook_asks_nobody_and_covers_nothing(lab: App, kind: str) -> None:
    if kind == "styles":
        parts = [f'<div style="{style}">x</div>' for style in STYLES.values()]
    else:
        parts = list(ELEMENTS.values())
    opened(lab, [cell({"html": part}, number) for number, part in enumerate(parts)])
    lab.page.wait_for_load_state("networkidle")
    assert_harmless(lab)


@pytest.mark.parametrize("name", DATA)
def test_a_card_of_any_data_is_drawn_in_bounded_time(lab: App, name: str) -> None:
    opened(lab, [cell({"html": "x"}, 0)])  # the application itself is loaded before it is timed
    lab.page.evaluate(
        """() => {
            window.tcLongest = 0;
            const keep = list => list.getEntries().forEach(e => { window.tcLongest = Math.max(window.tcLongest, e.duration); });
            window.tcTasks = new PerformanceObserver(keep);
            window.tcTasks.observe({ type: 'longtask' });
        }"""
    )
    opened(lab, [cell(DATA[name], 0)])
    lab.page.wait_for_selector("[data-tc-card-content='static']", state="attached")
    assert_harmless(lab)
    longest = lab.page.evaluate(
        """() => new Promise(done => {
            const end = () => setTimeout(() => { window.tcTasks.disconnect(); done(window.tcLongest); }, 100);
            requestAnimationFrame(() => requestAnimationFrame(end));
        })"""
    )
    assert longest < 3000


def test_our_own_card_keeps_its_looks(lab: App) -> None:
    html = html_card(analyze("def f(float(N) X) -> (Y) { Y(i) = X(i) - X(i - 1) }"), "cpu")
    opened(lab, [cell({"html": html}, 0)])
    kept = lab.page.evaluate(
        """html => {
            const made = document.createElement('div');
            made.innerHTML = html;
            const drawn = document.querySelector('.tc-html');
            const wanted = [...made.querySelectorAll('*')], found = [...drawn.querySelectorAll('*')];
            if (wanted.length !== found.length) return [`${wanted.length} elements, ${found.length} drawn`];
            return wanted.flatMap((each, n) => {
                const a = each.style.cssText, b = found[n].style.cssText;
                return a === b ? [] : [`${each.localName}: ${a} | ${b}`];
            });
        }""",
        html,
    )
    assert kept == []
