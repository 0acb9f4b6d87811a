"""Where the headers for C and C++ are, and what CMake and pkg-config need to find them."""

from pathlib import Path

__all__ = ["get_cmake_dir", "get_include", "get_pkgconfig_dir"]

HERE = Path(__file__).parent


def get_include() -> str:
    """Return the directory for a compiler's ``-I``: ``#include <queueduct/queueduct.hpp>``.

    >>> import os, queueduct.headers
    >>> os.path.exists(queueduct.headers.get_include() + "/queueduct/queueduct.hpp")
    True
    """
    return str(HERE / "include")


def get_cmake_dir() -> str:
    """Return the directory for ``CMAKE_PREFIX_PATH`` or ``queueduct_DIR``: ``find_package(queueduct CONFIG)``.

    >>> import os, queueduct.headers
    >>> os.path.exists(queueduct.headers.get_cmake_dir() + "/queueductConfig.cmake")
    True
    """
    return str(HERE / "cmake")


def get_pkgconfig_dir() -> str:
    """Return the directory for ``PKG_CONFIG_PATH``: ``pkg-config --cflags queueduct``.

    >>> import os, queueduct.headers
    >>> os.path.exists(queueduct.headers.get_pkgconfig_dir() + "/queueduct.pc")
    True
    """
    return str(HERE / "pkgconfig")
