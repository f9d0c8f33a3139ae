#!/usr/bin/env python3
"""Reads a built site in Chromium, from its files and without a network.

    tests/docs/browser_test.py SITE [--all]

The search finds a word and shows it; no page is wider than 360 px; axe finds nothing, in light and dark, on one page of each kind, or on all.
Needs selenium, axe-playwright-python (for its copy of axe-core), chromium and chromedriver.

Exit codes: 0 all held, 1 something did not, 2 usage, 77 there is no browser here.
"""
import argparse
import importlib.util
import pathlib
import shutil
import sys
import time

# One of each kind: text, code, tables, pictures, a long reference, C++, results, a live list.
KINDS = ["index.html", "start/index.html", "data/index.html", "feed/pytorch.html", "augment/gallery.html", "wait/profiles.html", "tutorials/feed_pytorch.html",
         "guides/dataloader.html", "reference/python/stoker.html", "reference/program/stoker_train.html", "reference/cpp/pipeline_loader.html",
         "how/decode.html", "measured/feed.html", "measured/plots.html", "limits.html", "search.html"]
AXE_RUN = """const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations.map(
  v => v.id + ': ' + v.help + ' (' + v.nodes.length + '), ' + v.nodes[0].html.slice(0, 160)))).catch(e => done(['axe failed: ' + e]));"""
BROKEN = "<html lang='en'><title>broken</title><main><h1>x</h1><img src='x.png'><p style='color:#ccc;background:#fff'>pale text</p><div style='width:900px'>wide</div></main>"


def axe_source():
    package = pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent
    return next(package.rglob("axe.min.js")).read_text(encoding="utf-8")


def start():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    # No host but files: what the pages would fetch fails.
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"):
        options.add_argument(word)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    driver.set_page_load_timeout(60)
    return driver


def width(driver, pixels):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 500})


def too_wide(driver):
    return driver.execute_script("return document.scrollingElement.scrollWidth > innerWidth || innerWidth > 360 ? document.scrollingElement.scrollWidth : 0")


def violations(driver, axe):
    driver.execute_script(axe)
    return driver.execute_async_script(AXE_RUN)


def searched(driver, site, word="quarantine"):
    """Types a word, and returns what the page of results shows."""
    from selenium.webdriver.common.by import By

    driver.get((site / "index.html").as_uri())
    box = driver.find_element(By.CSS_SELECTOR, "input.sidebar-search")
    box.send_keys(word + "\n")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = driver.find_elements(By.CSS_SELECTOR, "#search-results ul.search li a")
        if found:
            return [each.text for each in found]
        time.sleep(0.2)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="axe on all pages")
    parser.add_argument("--only", help="one page")
    options = parser.parse_args()
    if not shutil.which("chromedriver") or not importlib.util.find_spec("selenium") or not importlib.util.find_spec("axe_playwright_python"):
        print("left out: the site in a browser (no chromedriver, selenium or axe)")
        return 77
    site, axe, wrong = options.site.resolve(), axe_source(), []
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "live" not in path.parts and "tree" not in path.parts)
    driver = start()
    try:
        width(driver, 360)
        driver.get("data:text/html," + BROKEN.replace("#", "%23"))
        if not too_wide(driver) or len(violations(driver, axe)) < 2:
            wrong.append("a page that is too wide, pale and without alternative texts was not found out")
        found = searched(driver, site)
        if not found:
            wrong.append("the search finds nothing")
        kinds = [options.only] if options.only else pages if options.all else KINDS
        for page in [options.only] if options.only else pages:
            if page not in kinds and page.count("/") > 1 and page.startswith(("how/", "reference/cpp/")):
                continue
            width(driver, 360)
            driver.get((site / page).as_uri())
            wide = too_wide(driver)
            if wide:
                wrong.append(f"{page} is {wide} px wide on a phone of 360 px")
            if page not in kinds:
                continue
            for theme in ("light", "dark"):
                driver.execute_script("document.body.dataset.theme = arguments[0]", theme)
                for what in violations(driver, axe):
                    wrong.append(f"{page}, {theme}: {what}")
    finally:
        driver.quit()
    print("\n".join(wrong + [f"{len(pages)} pages, axe on {len(kinds)} of them in light and dark, {len(found)} results of the search; {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
