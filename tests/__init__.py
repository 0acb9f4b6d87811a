"""Tests, a folder a room: contract/ is what every kind of queue promises, each kind's folder what it adds.

core/ has segments and items, crash/ the kills, edges/ hostile surroundings, fuzz/ damaged segments, native/ the C++
tests, models/ the searches of models, support/ what several rooms use.
"""
