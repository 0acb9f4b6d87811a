"""The live views in a terminal: what they draw, and the keys that they take."""
