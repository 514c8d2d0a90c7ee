"""Settings from the environment, read once."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    host: str
    port: int
    debug: bool


def load(environ=os.environ):
    host = environ.get("APP_HOST", "127.0.0.1")
    port = int(environ.get("APP_PORT", "8000"))
    debug = environ.get("APP_DEBUG", "") in ("1", "true", "yes")
    if not 0 < port < 65536:
        raise ValueError(f"APP_PORT is {port}; it has to be between 1 and 65535")
    return Settings(host=host, port=port, debug=debug)


def describe(settings):
    """For the log at start."""
    mode = "debug" if settings.debug else "production"
    return f"{settings.host}:{settings.port} ({mode})"
