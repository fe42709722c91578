// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/run_record.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace plateau {

/// A made-up job: two modes at two concurrency levels, small.
inline job synthetic_job() {
  job j;
  j.name = "synthetic";
  j.device = "cpu";
  j.dtype = "torch.float32";
  j.hidden = 64;
  j.batch = 2;
  j.seq_len = 8;
  j.requests_per_worker = 20;
  j.concurrency_levels = {2, 3};
  j.modes = {"eager", "arena"};
  j.soak.windows = 3;
  return j;
}

/// The same with a soak that is long enough to judge growth.
inline job synthetic_job_with_a_soak() {
  auto j = synthetic_job();
  j.soak.windows = 12;
  return j;
}

inline run_info synthetic_info(job const& j, std::int64_t world) {
  run_info info;
  info.run_id = "20260304T101500Z-synthetic-7f3a";
  info.started = "2026-03-04T10:15:00Z";
  info.launcher = "mpirun";
  info.command_line = {"plateau", "run", "synthetic.json"};
  info.versions = {{"plateau", "0.1.0"}, {"hdf5", "1.10.8"}};
  info.job = to_json(j);
  for (std::int64_t rank = 0; rank < world; ++rank) {
    rank_info r{
        rank, "node" + std::to_string(rank / 2), "node" + std::to_string(rank / 2) + "/boot", rank % 2, 2, "0-3", {}};
    r.device = device_info{"cpu", "a processor", {}, {}, {}, {}, 1 << 30, 0, "0-3", 4, {{"torch", "2.11.0"}}};
    info.ranks.push_back(r);
  }
  return info;
}

/// A number that looks random but is always the same.
inline std::int64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<std::int64_t>((x ^ (x >> 31)) >> 1);
}

inline counters synthetic_counters(std::int64_t events) {
  counters c;
  c.allocated_bytes = 1 << 20;
  c.reserved_bytes = 4 << 20;
  c.peak_allocated_bytes = 2 << 20;
  c.allocation_events = 100 + events;
  c.free_events = 90 + events;
  c.segment_alloc_events = c.device_mallocs = c.segments = 2;
  return c;
}

/// What a rank measured of a case: eleven allocations in each request, in the arena modes none.
inline case_result synthetic_result(run_info const& info, job const& j, case_id const& id, std::int64_t rank) {
  auto const per_request = id.mode.starts_with("arena") ? 0 : 11;
  auto const requests = j.requests_per_worker * id.concurrency;
  measurement m;
  m.start_ns.resize(static_cast<std::size_t>(id.concurrency));
  m.latency_ns.resize(static_cast<std::size_t>(id.concurrency));
  for (std::size_t thread = 0; thread < m.latency_ns.size(); ++thread) {
    std::int64_t now = 100 * static_cast<std::int64_t>(thread);
    for (std::int64_t request = 0; request < j.requests_per_worker; ++request) {
      auto const seed = static_cast<std::uint64_t>(
          ((rank * 31 + id.concurrency) * 31 + static_cast<std::int64_t>(thread)) * 1'000'003 + request + 1);
      m.start_ns[thread].push_back(now);
      m.latency_ns[thread].push_back(400'000 + scrambled(seed) % 300'000);
      now += m.latency_ns[thread].back() + 50;
    }
    m.wall_ns = std::max(m.wall_ns, now);
  }
  m.gate_ns = 5'000'000 + 1000 * rank;
  m.pre = synthetic_counters(0);
  m.post = synthetic_counters(per_request * requests);
  m.outside_pre_bytes = m.outside_post_bytes = 3 << 20;
  for (std::int64_t window = 0; j.soak.windows > 0 && window <= j.soak.windows; ++window) {
    auto const done = window * requests_per_soak_window(j) * id.concurrency;
    m.soak.push_back(
        {done, 1'000'000 * window, synthetic_counters(per_request * (requests + done)), 3 << 20, 50 << 20});
  }
  m.tracked = attribution{requests, synthetic_counters(0), synthetic_counters(per_request * requests), {}};
  if (per_request > 0)
    m.tracked->ops = {{"aten::linear/aten::addmm", 4 * requests, 4096 * requests, 4 * requests, 4096 * requests},
                      {"aten::gelu", 7 * requests, 3584 * requests, 7 * requests, 3584 * requests}};
  m.harness_ns = 46.5;

  case_result r;
  r.run_id = info.run_id;
  r.id = id;
  r.rank = rank;
  r.status = case_status::passed;
  r.started = info.started;
  r.seconds = 1.5;
  if (per_request == 0) r.arena_kind = "planned";
  r.outputs = output_check{true, {}, 2e-7, 3e-7, 1e-5, {"0badcafe", "deadbeef"}};
  r.measured = m;
  return r;
}

inline case_result failed_result(run_info const& info, case_id const& id, std::int64_t rank, case_status status,
                                 std::string reason) {
  case_result r;
  r.run_id = info.run_id;
  r.id = id;
  r.rank = rank;
  r.status = status;
  r.reason = std::move(reason);
  r.started = info.started;
  return r;
}

inline void store(run_folder const& folder, case_result const& result) {
  write_raw_result(folder, result.id, result.rank, encode_raw_result(result), result.attempt);
}

/// A run folder in which every rank has passed every case.
inline run_folder synthetic_folder(std::filesystem::path const& path, job const& j, std::int64_t world) {
  auto folder = create_run_folder(path);
  auto const info = synthetic_info(j, world);
  write_run_info(folder, info);
  for (auto const& id : cases_of(j))
    for (std::int64_t rank = 0; rank < world; ++rank) store(folder, synthetic_result(info, j, id, rank));
  return folder;
}

/// A folder for one test, gone with it.
struct scratch_folder {
  std::filesystem::path path;
  scratch_folder() {
    auto name = (std::filesystem::temp_directory_path() / "plateau-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path); }
};

} // namespace plateau
