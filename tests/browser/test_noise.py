"""What the applications log without the front end, which is all that they may log with it."""

from __future__ import annotations

from browser_app import OWN_NOISE, App

SLIDER = "import ipywidgets\nfrom IPython.display import display\ndisplay(ipywidgets.IntSlider())"


def test_the_plain_application_logs_what_is_allowed(plain: App) -> None:
    plain.open(plain.server.notebook("plain.ipynb", ["x = 1", SLIDER]))
    plain.idle()
    plain.run_and_wait(1)
    plain.cell(1).locator(".widget-slider").wait_for()
    assert plain.page.locator("[data-tc-status]").count() == 0
    plain.page.reload()
    plain.shown()
    plain.idle()
    assert set(plain.errors) == set(OWN_NOISE[plain.kind])
