// A program that ends at a random moment, in a random way, while its device is at work (lifetime_runs.h).
//
//     ending_program SEED               exit status 0
#include "tests/core/ending_ways.h"
#include "tests/sparse/lifetimes.h"

int main(int count, char** words) { return coppice::Ending<coppice::World>::run(count, words); }
