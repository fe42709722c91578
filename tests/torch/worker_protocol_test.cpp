// SPDX-License-Identifier: Apache-2.0
#include "real_worker.hpp"
#include "small_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace plateau;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

// What the protocol promises of every case that passed.
void expect_whole(case_result const& r, std::int64_t concurrency) {
  ASSERT_EQ(r.status, case_status::passed);
  ASSERT_TRUE(r.measured.has_value());
  auto const& m = *r.measured;
  auto const threads = static_cast<std::size_t>(concurrency);
  EXPECT_THAT(m.latency_ns, AllOf(SizeIs(threads), Each(SizeIs(timed))));
  EXPECT_THAT(m.start_ns, AllOf(SizeIs(threads), Each(SizeIs(timed))));
  std::int64_t last = 0;
  for (std::size_t t = 0; t < threads; ++t) {
    EXPECT_TRUE(std::ranges::is_sorted(m.start_ns[t]));
    last = std::max(last, m.start_ns[t].back() + m.latency_ns[t].back());
  }
  EXPECT_EQ(m.wall_ns, last);
  EXPECT_GT(m.gate_ns, 0);
  EXPECT_GT(m.harness_ns, 0);
  EXPECT_GT(m.outside_pre_bytes, 0);

  ASSERT_EQ(std::ssize(m.soak), windows + 1);
  for (std::int64_t w = 0; w <= windows; ++w) {
    auto const& point = m.soak[static_cast<std::size_t>(w)];
    EXPECT_EQ(point.requests, w * per_window * concurrency);
    EXPECT_GT(point.host_resident_bytes, point.outside_bytes / 2);
  }
  ASSERT_TRUE(m.tracked.has_value());
  auto const& a = *m.tracked;
  EXPECT_EQ(a.requests, per_window * concurrency);
  EXPECT_EQ(sum_of<&op_events::allocation_events>(a.ops), change<&counters::allocation_events>(a.pre, a.post));
  EXPECT_EQ(sum_of<&op_events::free_events>(a.ops), change<&counters::free_events>(a.pre, a.post));
  EXPECT_EQ(sum_of<&op_events::allocated_bytes>(a.ops) - sum_of<&op_events::freed_bytes>(a.ops),
            change<&counters::allocated_bytes>(a.pre, a.post));
}

TEST(worker, says_what_device_it_has) {
  real_worker worker;
  auto const device = worker.greet(small_job("cpu"));
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_GT(device.memory_bytes, 1 << 20);
  EXPECT_GT(device.cpus, 0);
  EXPECT_FALSE(device.cpu_set.empty());
  EXPECT_THAT(device.versions.at("torch"), testing::StartsWith("2."));
}

TEST(worker, passes_an_eager_case_with_eleven_allocations_per_request) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  std::vector<memory_point> points;
  auto const r = worker.run({"eager", 2}, &points);
  expect_whole(r, 2);
  EXPECT_EQ(r.id.text(), "eager.c2");
  EXPECT_EQ(r.rank, 3);
  EXPECT_EQ(r.run_id, "a run");
  EXPECT_FALSE(r.compile_applied);
  EXPECT_EQ(change<&counters::allocation_events>(r.measured->pre, r.measured->post), 11 * 2 * timed);
  EXPECT_EQ(change<&counters::allocated_bytes>(r.measured->pre, r.measured->post), 0);
  ASSERT_EQ(points.size(), r.measured->soak.size());
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].allocator, r.measured->soak[i].allocator);
  EXPECT_GT(r.measured->tracked->ops.size(), 3u);
}

TEST(worker, counts_every_request_in_the_shared_memory) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  worker.run({"eager", 2});
  constexpr auto two_checks = 2, tracked = 1;
  for (std::size_t t = 0; t < 2; ++t)
    EXPECT_EQ(worker.seen().threads[t].requests, warmup + two_checks + timed + (windows + tracked) * per_window);
  EXPECT_EQ(worker.seen().threads[2].requests, 0);
  EXPECT_EQ(worker.seen().soak_window, windows);
  worker.send(protocol::stop{});
  EXPECT_EQ(worker.exit_code(), 0);
  EXPECT_EQ(worker.seen().now, phase::idle);
}

TEST(worker, passes_an_arena_case_without_an_allocation_and_with_eager_s_bits) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  auto const eager = worker.run({"eager", 3});
  auto const arena = worker.run({"arena", 3});
  expect_whole(arena, 3);
  EXPECT_EQ(arena.arena_kind, "planned");
  EXPECT_EQ(change<&counters::allocation_events>(arena.measured->pre, arena.measured->post), 0);
  EXPECT_EQ(change<&counters::allocation_events>(arena.measured->tracked->pre, arena.measured->tracked->post), 0);
  for (auto const* r : {&eager, &arena}) {
    EXPECT_TRUE(r->outputs->checked);
    EXPECT_LE(r->outputs->relative_l2, r->outputs->tolerance);
    EXPECT_GT(r->outputs->relative_l2, 0); // float32 against float64: equality would mean that it was not compared
    EXPECT_EQ(r->outputs->tolerance, 1e-5);
    EXPECT_TRUE(r->warnings.empty());
  }
  EXPECT_THAT(eager.outputs->digests, SizeIs(3));
  EXPECT_NE(eager.outputs->digests[0], eager.outputs->digests[1]); // each thread has an input of its own
  EXPECT_EQ(eager.outputs->digests, arena.outputs->digests);
}

TEST(worker, passes_noop_and_says_that_it_has_no_output_to_check) {
  auto j = small_job("cpu");
  j.workload = "noop";
  real_worker worker;
  worker.greet(j);
  auto const r = worker.run({"eager", 2});
  expect_whole(r, 2);
  EXPECT_FALSE(r.outputs->checked);
  EXPECT_EQ(r.outputs->why_not, "noop has no output");
  EXPECT_EQ(change<&counters::allocation_events>(r.measured->pre, r.measured->post), 0);
}

TEST(worker, passes_a_case_with_fresh_threads) {
  auto j = small_job("cpu");
  j.stream_threads = "fresh";
  real_worker worker;
  worker.greet(j);
  auto const r = worker.run({"eager", 2});
  expect_whole(r, 2);
  EXPECT_EQ(change<&counters::allocation_events>(r.measured->pre, r.measured->post), 11 * 2 * timed);
}

TEST(worker, skips_the_memory_phase_of_a_job_without_soak_windows) {
  auto j = small_job("cpu");
  j.soak.windows = 0;
  real_worker worker;
  worker.greet(j);
  auto const r = worker.run({"eager", 1});
  EXPECT_TRUE(r.measured->soak.empty());
  EXPECT_FALSE(r.measured->tracked.has_value());
}

TEST(worker, gives_a_case_s_memory_back_before_the_next_one) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  auto const first = worker.run({"eager", 2}).measured->pre;
  auto const again = worker.run({"eager", 2}).measured->pre;
  EXPECT_EQ(again.allocated_bytes, first.allocated_bytes);
  EXPECT_EQ(again.reserved_bytes, first.reserved_bytes); // from the first one's cache
  EXPECT_EQ(again.segment_alloc_events, first.segment_alloc_events);
}

TEST(worker, answers_a_case_that_cannot_run_here_with_skipped_and_takes_the_next) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  worker.send(protocol::prepare{{"arena_graph", 1}});
  auto const failure = worker.receive_a<protocol::failure>();
  EXPECT_EQ(failure.status, case_status::skipped);
  EXPECT_FALSE(failure.reason.empty());
  EXPECT_EQ(worker.run({"arena", 1}).status, case_status::passed);
}

TEST(worker, answers_a_case_that_is_too_large_with_out_of_memory_and_takes_the_next) {
  auto j = small_job("cpu");
  j.hidden = 65536; // a weight of 64 GiB
  j.batch = j.seq_len = 1;
  real_worker worker;
  if (worker.greet(j).memory_bytes >= std::int64_t{60} << 30) GTEST_SKIP() << "this machine has room for it";
  for (int twice = 0; twice < 2; ++twice) {
    worker.send(protocol::prepare{{"eager", 1}});
    auto const failure = worker.receive_a<protocol::failure>();
    EXPECT_EQ(failure.status, case_status::out_of_memory);
    EXPECT_THAT(failure.reason, AllOf(HasSubstr("memory"), testing::Not(HasSubstr("\n"))));
  }
}

TEST(worker, refuses_a_rank_of_another_protocol_version) {
  real_worker worker;
  protocol::hello h;
  h.version = protocol::version + 1;
  h.run = small_job("cpu");
  worker.send(h);
  auto const failure = worker.receive_a<protocol::failure>();
  EXPECT_THAT(failure.reason, HasSubstr("use plateau and plateau-worker of one build"));
  EXPECT_EQ(worker.exit_code(), 1);
}

TEST(worker, refuses_cuda_where_there_is_none) {
  auto j = small_job("cpu");
  j.device = "cuda";
  real_worker worker(std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", ""}});
  protocol::hello h;
  h.run = j;
  worker.send(h);
  EXPECT_THAT(worker.receive_a<protocol::failure>().reason, HasSubstr("CUDA"));
  EXPECT_EQ(worker.exit_code(), 1);
}

TEST(worker, refuses_to_start_a_case_that_was_not_prepared) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  worker.send(protocol::start{});
  EXPECT_THAT(worker.receive_a<protocol::failure>().reason, HasSubstr("start without a case"));
  EXPECT_EQ(worker.exit_code(), 1);
}

TEST(worker, exits_when_its_rank_closes) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  worker.close();
  EXPECT_EQ(worker.exit_code(), 0);
}

TEST(worker, leaves_the_launcher_s_signals_to_its_rank) {
  real_worker worker;
  worker.greet(small_job("cpu"));
  for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) kill(worker.pid(), number);
  EXPECT_EQ(worker.run({"arena", 1}).status, case_status::passed);
}

// The test stands in for the kernel's init, and holds the socket open, so that only the rank's death can end the
// worker.
TEST(worker, dies_with_its_rank) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  pid_t const rank = fork();
  if (rank == 0) {
    if (fork() == 0) become_worker(ends[1], -1);
    pause();
  }
  close(ends[1]);
  protocol::hello h;
  h.run = small_job("cpu");
  protocol::send_frame(ends[0], protocol::to_frame(h));
  protocol::frame_buffer received;
  ASSERT_TRUE(protocol::receive_frame(ends[0], received).has_value()); // it is up
  kill(rank, SIGKILL);
  ASSERT_EQ(waitpid(rank, nullptr, 0), rank);
  int status = 0;
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  close(ends[0]);
}

TEST(worker, tells_a_person_who_starts_it_by_hand_what_to_use) {
  auto* const out = popen("exec 3</dev/null; " PLATEAU_WORKER " 2>&1", "r");
  ASSERT_NE(out, nullptr);
  char text[512] = {};
  EXPECT_GT(fread(text, 1, sizeof text - 1, out), 0u);
  EXPECT_THAT(text, HasSubstr("plateau-worker is started by plateau run"));
  EXPECT_EQ(WEXITSTATUS(pclose(out)), 2);
}

} // namespace
