// The program of a room's unit tests.
#include "support/check.hpp"

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
