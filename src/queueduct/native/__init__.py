"""The bindings' interface to the C++ core: declarations, layouts, mappings, the fault guard."""
