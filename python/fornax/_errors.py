"""What goes wrong: fornax.Error, whose status is that of the C interface."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """Why a call failed; the numbers of fornax_status in fornax.h."""

    INVALID_ARGUMENT = 1  #: the caller or the model breaks a rule
    UNSUPPORTED = 2  #: valid, but not covered
    NOT_FOUND = 3  #: a file, device or name that does not exist
    OUT_OF_HOST_MEMORY = 4
    OUT_OF_DEVICE_MEMORY = 5
    DEVICE_LOST = 6  #: the device stopped, or is the one of a parent process
    TIMEOUT = 7
    IO = 8  #: the operating system refused a file operation
    DATA_LOSS = 9  #: a file is damaged or of another version
    INTERNAL = 10


class Error(Exception):
    """A call failed. str() of it is a sentence that says why, `status` the kind of reason."""

    def __init__(self, message: str, status: int = Status.INVALID_ARGUMENT):
        super().__init__(message, status)
        self.status = Status(status)

    def __str__(self) -> str:
        return str(self.args[0])
