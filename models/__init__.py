"""Executable models of queueduct's algorithms, searched exhaustively. See README.md."""
