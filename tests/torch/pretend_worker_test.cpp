// SPDX-License-Identifier: Apache-2.0
// The real worker with Torch's real CUDA code on the pretend GPU.
#include "real_worker.hpp"
#include "small_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

namespace {

using namespace plateau;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::int64_t mib = 1 << 20;

using settings = std::map<std::string, std::string>;

settings pretend_gpu(settings more = {}) {
  more.emplace("LD_LIBRARY_PATH", PRETEND_GPU);
  more.emplace("LD_PRELOAD", PRETEND_GPU "/libpretend_cuda.so");
  return more;
}

std::int64_t events_in_window(case_result const& r) {
  return change<&counters::allocation_events>(r.measured->pre, r.measured->post);
}

void expect_parts_add_up(case_result const& r) {
  auto const& a = r.measured->tracked.value();
  EXPECT_EQ(sum_of<&op_events::allocation_events>(a.ops), change<&counters::allocation_events>(a.pre, a.post));
  EXPECT_EQ(sum_of<&op_events::free_events>(a.ops), change<&counters::free_events>(a.pre, a.post));
  EXPECT_EQ(sum_of<&op_events::allocated_bytes>(a.ops) - sum_of<&op_events::freed_bytes>(a.ops),
            change<&counters::allocated_bytes>(a.pre, a.post));
}

std::string refusal_of(real_worker& worker, protocol::hello const& h) {
  worker.send(h);
  auto const failure = worker.receive_a<protocol::failure>();
  EXPECT_EQ(worker.exit_code(), 1);
  return failure.reason;
}

TEST(a_cuda_worker, says_what_device_it_has_and_that_it_is_pretended) {
  auto j = small_job("cuda");
  j.sync = "blocking";
  j.allow_tf32 = true;
  real_worker worker(pretend_gpu({{"PRETEND_NAME", "pretend A100"},
                                  {"PRETEND_MAJOR", "8"},
                                  {"PRETEND_MINOR", "6"},
                                  {"PRETEND_MIB", "3072"},
                                  {"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}}));
  auto const d = worker.greet(j);
  EXPECT_EQ(d.kind, "cuda");
  EXPECT_EQ(d.name, "pretend A100");
  EXPECT_EQ(d.index, 0);
  EXPECT_EQ(d.compute_capability, "8.6");
  EXPECT_EQ(d.memory_bytes, std::int64_t{3} << 30);
  EXPECT_EQ(d.pretended, true);
  EXPECT_THAT(d.uuid.value(), AllOf(StartsWith("GPU-"), SizeIs(40)));
  EXPECT_EQ(d.pci_bus_id, "0000:01:00.0");
  EXPECT_EQ(d.versions.at("cuda_runtime"), "13.0");
  EXPECT_EQ(d.settings->at("sync"), "blocking");
  EXPECT_EQ(d.settings->at("allow_tf32"), "true");
  EXPECT_EQ(d.settings->at("max_split_size_bytes"), std::to_string(64 * mib));
  EXPECT_EQ(d.settings->at("cublas_workspace_bytes"), "8519680");
}

TEST(a_cuda_worker, says_why_its_sensors_tell_nothing) {
  real_worker worker(pretend_gpu({{"PRETEND_NVML", "broken"}}));
  auto const d = worker.greet(small_job("cuda"));
  EXPECT_EQ(d.sensors_unavailable, "NVML does not start: Driver Not Loaded");
  EXPECT_FALSE(worker.run({"eager", 1}).measured->gpu.has_value());
}

TEST(a_cuda_worker, reads_its_sensors_at_the_quiet_points) {
  real_worker worker(pretend_gpu({{"PRETEND_NVML", "foreign,held_down"}}));
  auto const d = worker.greet(small_job("cuda"));
  EXPECT_EQ(d.versions.at("driver"), "580.00");
  EXPECT_EQ(d.mig, false);
  EXPECT_EQ(d.sensors_unavailable, std::nullopt);
  auto const gpu = worker.run({"eager", 1}).measured->gpu.value();
  EXPECT_EQ(gpu.before.sm_clock_mhz, 1980);
  EXPECT_EQ(gpu.after_soak->others->size(), 2u);
  EXPECT_GT(gpu.after.held_down_by[0].nanoseconds, gpu.before.held_down_by[0].nanoseconds);
}

TEST(a_cuda_worker, is_the_choice_of_auto_where_a_gpu_is_visible) {
  auto j = small_job("cuda");
  j.device = "auto";
  EXPECT_EQ(real_worker(pretend_gpu()).greet(j).kind, "cuda");
  EXPECT_EQ(real_worker(pretend_gpu({{"CUDA_VISIBLE_DEVICES", ""}})).greet(j).kind, "cpu");
}

TEST(a_cuda_worker, takes_the_device_of_its_local_rank) {
  real_worker worker(pretend_gpu({{"PRETEND_DEVICES", "8"}, {"CUDA_VISIBLE_DEVICES", "6,4,2"}}));
  protocol::hello h;
  h.run = small_job("cuda");
  h.local_rank = 1, h.local_size = 3;
  worker.send(h);
  auto const d = worker.receive_a<device_info>();
  EXPECT_EQ(d.index, 1);
  EXPECT_EQ(d.visible_devices, 3);
  EXPECT_EQ(d.pci_bus_id, "0000:05:00.0");
  auto const r = worker.run({"eager", 2});
  EXPECT_EQ(events_in_window(r), 9 * 2 * timed); // not on device 0, where new threads begin
}

TEST(a_cuda_worker, refuses_a_local_rank_that_has_no_device) {
  real_worker worker(pretend_gpu({{"PRETEND_DEVICES", "2"}}));
  protocol::hello h;
  h.run = small_job("cuda");
  h.local_rank = 2, h.local_size = 3;
  EXPECT_THAT(refusal_of(worker, h), AllOf(HasSubstr("3 ranks"), HasSubstr("2 CUDA devices"), HasSubstr("GPU-")));
}

class on_each_generation : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(of_gpus, on_each_generation, testing::Values("8", "9"),
                         [](auto const& generation) { return std::string("sm_") + generation.param + "0"; });

TEST_P(on_each_generation, eager_makes_nine_events_a_request_and_the_arenas_none) {
  real_worker worker(pretend_gpu({{"PRETEND_MAJOR", GetParam()}}));
  worker.greet(small_job("cuda"));
  for (std::int64_t const threads : {1, 3}) {
    auto const eager = worker.run({"eager", threads});
    EXPECT_EQ(events_in_window(eager), 9 * threads * timed);
    EXPECT_EQ(change<&counters::allocated_bytes>(eager.measured->pre, eager.measured->post), 0);
    EXPECT_EQ(change<&counters::device_mallocs>(eager.measured->pre, eager.measured->post), 0);
    EXPECT_GT(eager.measured->tracked->ops.size(), 4u);
    expect_parts_add_up(eager);
    for (auto const* name : {"arena", "arena_graph", "arena_planned"}) {
      auto const arena = worker.run({name, threads});
      EXPECT_EQ(events_in_window(arena), 0) << name;
      EXPECT_EQ(arena.arena_kind, std::string_view(name) == "arena_planned" ? "planned" : "graph");
      EXPECT_TRUE(arena.measured->tracked->ops.empty());
      expect_parts_add_up(arena);
    }
  }
}

TEST(a_cuda_case, says_that_outputs_cannot_be_checked_on_a_pretend_gpu) {
  real_worker worker(pretend_gpu());
  worker.greet(small_job("cuda"));
  auto const r = worker.run({"eager", 1});
  EXPECT_FALSE(r.outputs->checked);
  EXPECT_THAT(r.outputs->why_not.value(), HasSubstr("pretend GPU"));
  EXPECT_TRUE(r.outputs->digests.empty());
}

// As in any process that goes on: each case has new streams, and cuBLAS keeps a workspace for each.
TEST(a_cuda_case, leaves_to_the_next_of_its_worker_the_workspaces_of_its_streams_and_nothing_else) {
  real_worker worker(pretend_gpu());
  worker.greet(small_job("cuda"));
  for (auto const* name : {"eager", "arena_planned", "arena_graph"}) {
    auto const first = worker.run({name, 2}).measured->pre, again = worker.run({name, 2}).measured->pre;
    EXPECT_EQ(again.allocated_bytes - first.allocated_bytes, 2 * (32 * mib + mib)) << name;
  }
}

// Fresh threads take new cuBLAS handles, and with them workspaces, in the timed window.
TEST(a_cuda_case, with_fresh_threads_takes_workspaces_in_the_timed_window) {
  auto j = small_job("cuda");
  j.stream_threads = "fresh";
  real_worker worker(pretend_gpu({{"PRETEND_MAJOR", "8"}}));
  worker.greet(j);
  auto const r = worker.run({"eager", 2});
  constexpr auto workspaces = 8'519'680 + mib;
  EXPECT_EQ(change<&counters::allocated_bytes>(r.measured->pre, r.measured->post), 2 * workspaces);
  EXPECT_EQ(events_in_window(r), 9 * 2 * timed + 2 * 2);
}

// What an older PyTorch measured on an sm_86 card: the same job's eager case, before its timed window.
TEST(a_cuda_case, reserves_what_the_seed_s_run_reserved) {
  job j;
  j.name = "seed";
  j.device = "cuda";
  j.stream_threads = "fresh";
  j.soak.windows = 0;
  real_worker worker(pretend_gpu({{"PRETEND_MAJOR", "8"}, {"PRETEND_MINOR", "6"}}));
  worker.greet(j);
  auto const pre = worker.run({"eager", 4}).measured->pre;
  EXPECT_EQ(pre.reserved_bytes, 270'532'608);
  EXPECT_EQ(pre.segment_alloc_events, 19);
  EXPECT_EQ(pre.allocated_bytes, 67'647'488 + 4 * mib); // a workspace of cuBLASLt for each stream is kept since
}

// Each workspace belongs to a handle and a stream; the main thread warms all streams with one handle.
TEST(a_cuda_case, has_a_stream_for_each_thread_also_beyond_torch_s_32) {
  auto j = small_job("cuda");
  j.stream_threads = "fresh";
  real_worker worker(pretend_gpu({{"PRETEND_MAJOR", "8"}}));
  worker.greet(j);
  auto const few = worker.run({"eager", 1}).measured->pre;
  auto const many = worker.run({"arena_graph", 70}).measured->pre;
  EXPECT_GT(many.allocated_bytes - few.allocated_bytes, 69 * (8'519'680 + mib));
}

TEST(a_cuda_case, saves_an_event_with_the_residual_in_place) {
  auto j = small_job("cuda");
  j.use_inplace_residual = true;
  real_worker worker(pretend_gpu());
  worker.greet(j);
  EXPECT_EQ(events_in_window(worker.run({"eager", 2})), 8 * 2 * timed);
  EXPECT_EQ(events_in_window(worker.run({"arena_planned", 2})), 0);
}

TEST(a_cuda_case, has_counters_that_cannot_tell_when_caching_is_off) {
  real_worker worker(pretend_gpu({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}));
  worker.greet(small_job("cuda"));
  EXPECT_THAT(worker.run({"eager", 1}).measured->counters_unavailable.value(), HasSubstr("caching is off"));
}

TEST(a_cuda_case, has_counters_that_cannot_tell_with_another_backend) {
  real_worker worker(pretend_gpu({{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"}}));
  EXPECT_EQ(worker.greet(small_job("cuda")).settings->at("allocator_backend"), "cudaMallocAsync");
  EXPECT_THAT(worker.run({"eager", 1}).measured->counters_unavailable.value(), HasSubstr("cudaMallocAsync"));
}

// Expandable segments are no segments to the counter of segments: device_mallocs tells.
TEST(a_cuda_case, maps_memory_before_its_timed_window_with_expandable_segments) {
  real_worker worker(pretend_gpu({{"PRETEND_DEVICES", "2"}, {"PYTORCH_ALLOC_CONF", "expandable_segments:True"}}));
  protocol::hello h;
  h.run = small_job("cuda");
  h.local_rank = 1, h.local_size = 2;
  worker.send(h);
  EXPECT_EQ(worker.receive_a<device_info>().settings->at("expandable_segments"), "true");
  for (auto const* name : {"eager", "arena_planned"}) {
    auto const r = worker.run({name, 2});
    EXPECT_EQ(r.measured->pre.segment_alloc_events, 0);
    EXPECT_GT(r.measured->pre.device_mallocs, 2);
    EXPECT_EQ(change<&counters::device_mallocs>(r.measured->pre, r.measured->post), 0);
    EXPECT_EQ(events_in_window(r), std::string_view(name) == "eager" ? 9 * 2 * timed : 0);
  }
}

TEST(a_cuda_case, has_counters_that_can_tell_otherwise) {
  real_worker worker(pretend_gpu());
  worker.greet(small_job("cuda"));
  EXPECT_EQ(worker.run({"eager", 1}).measured->counters_unavailable, std::nullopt);
}

TEST(a_cuda_case, too_large_for_the_device_is_out_of_memory_in_torch_s_words) {
  auto j = small_job("cuda");
  j.hidden = 16384; // a weight of 2 GiB
  real_worker worker(pretend_gpu({{"PRETEND_MIB", "1024"}}));
  worker.greet(j);
  for (int twice = 0; twice < 2; ++twice) {
    worker.send(protocol::prepare{{"eager", 1}});
    auto const failure = worker.receive_a<protocol::failure>();
    EXPECT_EQ(failure.status, case_status::out_of_memory);
    EXPECT_THAT(failure.reason,
                AllOf(StartsWith("CUDA out of memory. Tried to allocate 2.00 GiB"), testing::Not(HasSubstr("\n"))));
  }
}

// 64 MiB with each request: the device is full in the third soak window.
TEST(a_cuda_case, that_runs_out_of_memory_in_its_soak_has_told_its_curve) {
  auto j = small_job("cuda");
  j.concurrency_levels = {1};
  j.requests_per_worker = 2;
  j.soak = {windows, 6, {}};
  j.inject = {"leak:bytes=67108864,every=1,case=eager.c1"};
  real_worker worker(pretend_gpu({{"PRETEND_MIB", "1024"}}));
  worker.greet(j);
  worker.send(protocol::prepare{{"eager", 1}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  std::vector<std::int64_t> live;
  auto e = worker.receive();
  for (; e && std::holds_alternative<memory_point>(*e); e = worker.receive())
    live.push_back(std::get<memory_point>(*e).allocator.allocated_bytes);
  ASSERT_TRUE(e && std::holds_alternative<protocol::failure>(*e));
  EXPECT_EQ(std::get<protocol::failure>(*e).status, case_status::out_of_memory);
  ASSERT_EQ(live.size(), 3u);
  EXPECT_EQ(live[2] - live[1], 6 * 64 * mib);
  EXPECT_EQ(events_in_window(worker.run({"arena_planned", 1})), 0) << "the planted fault is the first case's";
}

TEST(a_cuda_case, runs_out_of_memory_when_that_is_planted) {
  auto j = small_job("cuda");
  j.inject = {"oom:case=eager.c4"};
  real_worker worker(pretend_gpu());
  worker.greet(j);
  worker.send(protocol::prepare{{"eager", 4}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  EXPECT_EQ(worker.receive_a<protocol::failure>().status, case_status::out_of_memory);
  EXPECT_EQ(events_in_window(worker.run({"eager", 2})), 9 * 2 * timed);
}

// Of all stream threads, until there is something to read.
std::int64_t requests_so_far(real_worker const& worker) {
  std::int64_t sum = 0;
  for (auto const& thread : worker.seen().threads) sum += thread.requests;
  return sum;
}

void wait_for_requests_beyond(real_worker const& worker, std::int64_t count) {
  while (requests_so_far(worker) <= count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class at_the_gate : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(of, at_the_gate, testing::Values("persistent", "fresh"),
                         [](auto const& threads) { return threads.param + std::string("_threads"); });

TEST_P(at_the_gate, a_cuda_case_keeps_the_clocks_up_and_leaves_no_trace_of_it) {
  auto j = small_job("cuda");
  j.stream_threads = GetParam();
  real_worker worker(pretend_gpu({{"PRETEND_MAJOR", "8"}, {"PRETEND_CLOCKS", "1"}}));
  worker.greet(j);
  for (auto const* mode : {"eager", "arena_graph"}) {
    worker.send(protocol::prepare{{mode, 2}});
    worker.receive_a<protocol::ready>();
    auto const ready = requests_so_far(worker);
    wait_for_requests_beyond(worker, ready + 500);
    EXPECT_EQ(worker.seen().now, phase::keeping_clocks);
    auto const r = worker.start();
    EXPECT_GT(r.measured->clock_requests.value(), 500);
    bool const fresh = GetParam() == std::string_view("fresh");
    if (std::string_view(mode) != "eager")
      EXPECT_EQ(events_in_window(r), 0) << mode;
    else
      EXPECT_EQ(events_in_window(r), 9 * 2 * timed + (fresh ? 2 * 2 : 0)); // fresh threads take two workspaces each
    EXPECT_EQ(change<&counters::device_frees>(r.measured->pre, r.measured->post), 0);
  }
}

TEST(a_cuda_worker_that_keeps_the_clocks_up, ends_when_it_is_told_to_stop_and_when_its_rank_is_gone) {
  for (bool const told : {true, false}) {
    real_worker worker(pretend_gpu({{"PRETEND_CLOCKS", "1"}}));
    worker.greet(small_job("cuda"));
    worker.send(protocol::prepare{{"eager", 2}});
    worker.receive_a<protocol::ready>();
    wait_for_requests_beyond(worker, requests_so_far(worker));
    if (told)
      worker.send(protocol::stop{});
    else
      worker.close();
    EXPECT_EQ(worker.exit_code(), 0);
  }
}

TEST(a_cuda_worker_that_keeps_the_clocks_up, takes_another_case_instead) {
  real_worker worker(pretend_gpu({{"PRETEND_CLOCKS", "1"}}));
  worker.greet(small_job("cuda"));
  worker.send(protocol::prepare{{"eager", 2}});
  worker.receive_a<protocol::ready>();
  EXPECT_EQ(events_in_window(worker.run({"arena_planned", 1})), 0);
}

TEST(a_cuda_worker, whose_device_breaks_says_so_and_ends) {
  real_worker worker(pretend_gpu({{"PRETEND_BREAKS_AT", "indexSelect"}}));
  auto j = small_job("cuda");
  j.inject = {"device_error"};
  worker.greet(j);
  worker.send(protocol::prepare{{"eager", 2}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  auto const failure = worker.receive_a<protocol::failure>();
  EXPECT_EQ(failure.status, case_status::crashed);
  EXPECT_THAT(failure.reason, HasSubstr("illegal memory access"));
  EXPECT_EQ(worker.exit_code(), 1);
}

} // namespace
