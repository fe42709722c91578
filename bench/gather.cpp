// SPDX-License-Identifier: Apache-2.0
// gather FOLDER REQUESTS, under mpirun: how fast rank 0 takes in the results of ranks that do not see its folder and
// makes each of them durable, as a run does after each case. Prints bytes and seconds, as JSON.
#include "orchestrator/rank/communicator.hpp"
#include "tests/support/synthetic_run.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int, char** arguments) try {
  using namespace plateau;
  using clock = std::chrono::steady_clock;
  communicator ranks;
  auto run = synthetic_job();
  run.requests_per_worker = std::atoll(arguments[2]);
  case_id const id{"eager", 1, 0};
  auto const result = encode_raw_result(synthetic_result(synthetic_info(run, ranks.size()), run, id, ranks.rank()));

  ranks.barrier("making up the results");
  auto const began = clock::now();
  if (ranks.rank() != 0) {
    ranks.send(result, 0, "gathering");
  } else {
    std::size_t bytes = 0;
    for (int rank = 1; rank < ranks.size(); ++rank) {
      auto const received = ranks.receive(rank, "gathering");
      write_raw_result(run_folder{arguments[1]}, id, rank, received);
      ranks.beat(); // a slow disk is no silence
      bytes += received.size();
    }
    auto const seconds = std::chrono::duration<double>(clock::now() - began).count();
    std::printf("{\"bytes\": %zu, \"seconds\": %.6f}\n", bytes, seconds);
  }
  ranks.barrier("the end");
} catch (std::exception const& e) {
  std::fprintf(stderr, "gather: %s\n", e.what());
  return 1;
}
