import pytest

from app.settings import load


def test_defaults():
    settings = load({})
    assert (settings.host, settings.port, settings.debug) == ("127.0.0.1", 8000, False)


def test_ports_have_bounds():
    with pytest.raises(ValueError):
        load({"APP_PORT": "70000"})
