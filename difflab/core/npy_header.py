"""The header of NumPy's files, compared with the data that follows it."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO

from difflab.core.wording import bytes_text

if TYPE_CHECKING:
    import numpy as np


def read_header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and dtype; the stream is then at the data.

    Raises
    ------
    ValueError
        It is not a file of this format, or its header announces more data than follow.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryFile() as file:
    ...     np.save(file, np.ones((2, 3)))
    ...     file.seek(0)
    ...     read_header(file)
    0
    ((2, 3), False, dtype('float64'))
    """
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, columns_first, dtype = header(stream)
    except OSError:
        raise
    except Exception as error:  # NumPy evaluates the header, which may raise anything
        raise ValueError(f"its header is damaged: {error}") from error
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"its header states the shape {shape}")
    announced = prod(shape) * dtype.itemsize
    held = os.fstat(stream.fileno()).st_size - stream.tell()
    if announced > held and not dtype.hasobject:
        raise ValueError(
            f"its header announces {bytes_text(announced)} of data, but {bytes_text(held)} follow"
        )
    return shape, columns_first, dtype
