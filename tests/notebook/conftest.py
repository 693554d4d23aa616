"""What the tests of notebooks share: the environment of Jupyter, away from the user's own."""

import os

import pytest


@pytest.fixture(scope="session")
def jupyter_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of servers and kernels."""
    folder = tmp_path_factory.mktemp("jupyter")
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    places = {f"JUPYTER_{name}": str(folder / name.lower()) for name in names}
    settings = folder / "settings"
    news = settings / "@jupyterlab" / "apputils-extension"
    news.mkdir(parents=True)
    (news / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    own = {"IPYTHONDIR": str(folder / "ipython"), "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    return {**os.environ, **places, **own, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
