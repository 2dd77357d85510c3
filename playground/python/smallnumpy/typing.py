"""`numpy.typing` as far as annotations are read at run time."""

from smallnumpy.array import ndarray

NDArray = ndarray
ArrayLike = object
