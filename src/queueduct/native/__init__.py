"""What the bindings use of the C++ core: declarations, layouts, mappings, the fault guard."""
