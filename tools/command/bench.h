// The subcommands of `stoker bench`. Each one parses its options, runs a bench of bench/suite and
// prints the report. They follow the rules of command.h.
#pragma once

#include <string>

namespace stoker {

bool is_bench(const std::string& name);  // "feed"

int run_bench_feed(int argc, char** argv);
int run_bench_emulate(int argc, char** argv);
int run_bench_scaling(int argc, char** argv);
int run_bench_links(int argc, char** argv);
int run_bench_depth(int argc, char** argv);
int run_bench_layout(int argc, char** argv);
int run_bench_slice(int argc, char** argv);
int run_bench_predict(int argc, char** argv);
int run_bench_convergence(int argc, char** argv);
int run_bench_guard(int argc, char** argv);
int run_bench_compare(int argc, char** argv);

}  // namespace stoker
