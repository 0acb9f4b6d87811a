// The one header of a C++ program: queues that Python made, by name. See docs/cpp.md.
//
//   struct Tick { char symbol[8]; double price; };
//   QUEUEDUCT_RECORD(Tick, symbol, price);
//
//   queueduct::Writer<Tick> ticks("ticks");
//   ticks.put({"ACME", 101.5});
#pragma once

#include "cpp/queues.hpp"
