// SPDX-License-Identifier: Apache-2.0
// readers_make_run DIR: a made-up run of three ranks, with everything that can be absent absent somewhere, and
// assembled. readers_test.py then reads it with the tools that people have.
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/assemble.hpp"
#include "tests/support/synthetic_run.hpp"

#include <iostream>

int main(int, char** arguments) {
  using namespace plateau;
  auto run = synthetic_job();
  run.modes = {"eager", "arena", "compiled"};
  auto const info = synthetic_info(run, 3);
  auto const folder = synthetic_folder(arguments[1], run, 3);
  case_id const eager3{"eager", 3, 0}, arena3{"arena", 3, 0};

  std::filesystem::remove(folder.raw_result(eager3, 1));
  auto short_of_requests = synthetic_result(info, run, eager3, 2);
  short_of_requests.measured->latency_ns[1].resize(15);
  short_of_requests.measured->start_ns[1].resize(15);
  short_of_requests.measured->tracked->ops.push_back({"aten::layer_norm", 0, 0, 0, 0});
  store(folder, short_of_requests);

  auto died = failed_result(info, arena3, 0, case_status::out_of_memory, "killed in soak window 2");
  died.soak_so_far = {{0, 0, synthetic_counters(0), 0, 1 << 20}, {30, 1000, synthetic_counters(0), 0, 2 << 20}};
  store(folder, died);

  for (auto const concurrency : run.concurrency_levels)
    for (std::int64_t rank = 0; rank < 3; ++rank)
      store(folder, failed_result(info, {"compiled", concurrency, 0}, rank, case_status::skipped, "no C++ compiler"));
  std::cout << table(assemble(folder).summary);
}
