"""A real browser for the tests of pages: Debian's chromium without a screen, and the colors that it shows."""

import re
import shutil
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1240,1600",
)


def chromium(profile: Path) -> Chrome:
    """Start Chromium with an empty folder for its profile; whoever has it must quit it."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, place in programs.items() if place is None]
    assert not missing, f"{', '.join(missing)} not found: apt-get install chromium chromium-driver"
    options = ChromeOptions()
    options.binary_location = programs["chromium"]
    for each in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # A named driver keeps selenium from looking for one on the network.
    return Chrome(options=options, service=Service(programs["chromedriver"]))


def emulate(browser: Chrome, **features: str) -> None:
    """Have the browser say what its user prefers: ``color_scheme``, ``reduced_motion``."""
    told = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})


def color(text):
    """Return a color and how opaque it is."""
    numbers = [float(each) for each in re.findall(r"[\d.]+", text)]
    return numbers[:3], numbers[3] if len(numbers) > 3 else 1.0


def luminance(color):
    """Return how bright a color is, from 0 to 1."""
    shares = [each / 255 for each in color]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """Return the contrast of two colors, as the guidelines for web content have it."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)
