"""Columns into fields of records at once, where the values are in the column as the field has them."""
