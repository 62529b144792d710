"""`python -m fornax ...` is the command `fornax`, of the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import _driver


def main() -> NoReturn:
    """Becomes the command, so that signals, exit status and streams are its own."""
    # It finds the manifest beside itself.
    environment = _driver.with_loader(dict(os.environ))
    try:
        os.execve(str(_driver.COMMAND), ["fornax", *sys.argv[1:]], environment)
    except OSError as error:
        sys.exit(f"fornax: The command {_driver.COMMAND} cannot be run: {error.strerror}.")


if __name__ == "__main__":
    main()
