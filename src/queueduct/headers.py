"""Where the headers for C and C++ are, and what CMake and pkg-config need to find them."""

from pathlib import Path

__all__ = ["get_cmake_dir", "get_include", "get_pkgconfig_dir"]

HERE = Path(__file__).parent


def get_include() -> str:
    """Return the directory for a compiler's ``-I``: ``#include <queueduct/queueduct.hpp>``."""
    return str(HERE / "include")


def get_cmake_dir() -> str:
    """Return the directory for ``CMAKE_PREFIX_PATH`` or ``queueduct_DIR``: ``find_package(queueduct CONFIG)``."""
    return str(HERE / "cmake")


def get_pkgconfig_dir() -> str:
    """Return the directory for ``PKG_CONFIG_PATH``: ``pkg-config --cflags queueduct``."""
    return str(HERE / "pkgconfig")
