"""JupyterLab in a browser."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.notebook.kernels import LIMIT_SECONDS

_TOKEN = "0123456789abcdef"
_AUTHORIZED = {"Authorization": f"token {_TOKEN}"}


@contextlib.contextmanager
def jupyterlab(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start JupyterLab in a folder, and yield its address."""
    command = [
        *(
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            f"--IdentityProvider.token={_TOKEN}",
        ),
        *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={folder}"),
    ]
    log = folder / "jupyterlab.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        yield _address(server, log)
    finally:
        server.terminate()
        server.wait(60)


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    ends = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < ends and server.poll() is None:
        for word in log.read_text().split():
            if word.startswith("http://127.0.0.1:"):
                return word.split("/lab")[0]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def write_notebook(path: Path, cells: list[str]) -> None:
    import nbformat  # it takes seconds

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


class Page:
    """A notebook in JupyterLab."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self._browser = browser
        self._address = address

    def open(self, name: str, cells: int) -> None:
        self._browser.get(f"{self._address}/doc/tree/{name}?token={_TOKEN}")
        self.until(lambda: len(self._cells()) >= cells and self._kernel_is_idle(), "the notebook")

    def _cells(self) -> list[Any]:
        return self._browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell")

    def _kernel_is_idle(self) -> bool:
        return bool(
            self._browser.find_elements(
                By.CSS_SELECTOR, ".jp-Notebook-ExecutionIndicator[data-status='idle']"
            )
        )

    def begin(self, number: int) -> None:
        """Start to run a cell."""
        editor = self._cells()[number].find_element(By.CSS_SELECTOR, ".cm-content")
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", editor)
        editor.click()
        editor.send_keys(Keys.CONTROL, Keys.ENTER)

    def run(self, number: int) -> None:
        before = self.prompt(number)
        self.begin(number)
        self.until(lambda: self.prompt(number) not in (before, "[*]:"), f"the end of cell {number}")

    def prompt(self, number: int) -> str:
        return self._cells()[number].find_element(By.CSS_SELECTOR, ".jp-InputPrompt").text

    def output(self, number: int) -> Any:
        return self._cells()[number].find_element(By.CSS_SELECTOR, ".jp-Cell-outputWrapper")

    def text(self, number: int) -> str:
        return str(self.output(number).text)

    def found(self, number: int, selector: str) -> list[Any]:
        return self.output(number).find_elements(By.CSS_SELECTOR, selector)

    def show(self, number: int) -> None:
        """Bring the output of a cell into view."""
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.output(number))

    def line(self, number: int) -> str:
        """Return the path of the first line of a live cell."""
        return str(self.found(number, ".wjoin-live svg path:not(.floor)")[0].get_attribute("d"))

    def interrupt(self) -> None:
        """Interrupt the kernel as its button does."""
        self._ask("/interrupt")

    def restart(self) -> None:
        """End the kernel in good order, with everything that it runs, and start another one."""
        self._ask("/restart")

    def _ask(self, action: str) -> None:
        (kernel,) = self._json("/api/kernels")
        request = urllib.request.Request(
            f"{self._address}/api/kernels/{kernel['id']}{action}", method="POST", headers=_AUTHORIZED
        )
        urllib.request.urlopen(request).close()

    def _json(self, path: str) -> Any:
        request = urllib.request.Request(f"{self._address}{path}", headers=_AUTHORIZED)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        ends = time.monotonic() + LIMIT_SECONDS
        while True:
            # What is drawn anew while it is read is read again.
            with contextlib.suppress(WebDriverException, IndexError):
                if condition():
                    return
            if time.monotonic() > ends:
                picture = Path(tempfile.gettempdir()) / "wjoin-notebook.png"
                self._browser.save_screenshot(str(picture))
                raise AssertionError(f"waited for {what}; {picture} shows the page")
            time.sleep(0.2)
