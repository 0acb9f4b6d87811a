"""Executable models of penstock's algorithms, searched exhaustively. See README.md."""
