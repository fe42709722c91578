// SPDX-License-Identifier: Apache-2.0
// assemble FOLDER RANKS CASES REQUESTS: makes up a run's raw results in a new folder, and assembles them. Prints how
// many bytes of samples they are, and the seconds that assembling took, as JSON.
#include "orchestrator/store/assemble.hpp"
#include "tests/support/synthetic_run.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int, char** arguments) {
  using namespace plateau;
  using clock = std::chrono::steady_clock;
  auto run = synthetic_job();
  run.modes = {"eager"};
  run.concurrency_levels = {1};
  auto const ranks = std::atoll(arguments[2]);
  run.repeats = std::atoll(arguments[3]);
  run.requests_per_worker = std::atoll(arguments[4]);
  auto const folder = synthetic_folder(arguments[1], run, ranks);

  auto const began = clock::now();
  assemble(folder);
  auto const seconds = std::chrono::duration<double>(clock::now() - began).count();
  std::printf("{\"bytes\": %lld, \"seconds\": %.6f}\n",
              static_cast<long long>(ranks * run.repeats * run.requests_per_worker * 16), seconds);
}
