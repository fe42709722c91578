// SPDX-License-Identifier: Apache-2.0
// Each kind of planted fault in the real worker, as its rank sees it.
#include "real_worker.hpp"
#include "small_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace {

using namespace plateau;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t before_the_gate = warmup + 1; // and one for the output check

job planted_job(std::vector<std::string> inject) {
  auto j = small_job("cpu");
  j.concurrency_levels = {1, 2};
  j.modes = {"eager", "arena"};
  j.inject = std::move(inject);
  return j;
}

std::vector<std::int64_t> allocated_in_soak(case_result const& r) {
  std::vector<std::int64_t> series;
  for (auto const& point : r.measured->soak)
    series.push_back(point.allocator.allocated_bytes - r.measured->soak[0].allocator.allocated_bytes);
  return series;
}

op_events const* leak_of(case_result const& r) {
  auto const& ops = r.measured->tracked->ops;
  auto const found = std::ranges::find_if(ops, [](auto const& o) { return o.op.starts_with("plateau::planted_leak"); });
  return found == ops.end() ? nullptr : &*found;
}

// prepare and start, up to the first event that is no soak point.
protocol::failure failure_of(real_worker& worker, case_id const& id) {
  worker.send(protocol::prepare{id});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  while (true) {
    auto const e = worker.receive();
    if (e && std::holds_alternative<memory_point>(*e)) continue;
    if (!e || !std::holds_alternative<protocol::failure>(*e)) throw_unexpected(e);
    return std::get<protocol::failure>(*e);
  }
}

TEST(planted_leak, keeps_exactly_its_bytes_for_each_so_many_requests_of_each_thread_and_is_named) {
  for (auto const mode : {"eager", "arena"}) {
    real_worker worker;
    worker.greet(planted_job({"leak:rank=3,bytes=4096,every=5"}));
    auto const r = worker.run({mode, 2});
    constexpr std::int64_t per_thread = per_window / 5, kept = 2 * per_thread;
    EXPECT_THAT(allocated_in_soak(r), ElementsAre(0, kept * 4096, 2 * kept * 4096, 3 * kept * 4096, 4 * kept * 4096))
        << mode;
    EXPECT_EQ(r.measured->post.allocated_bytes - r.measured->pre.allocated_bytes, 2 * timed / 5 * 4096);
    auto const* const op = leak_of(r);
    ASSERT_NE(op, nullptr) << mode;
    EXPECT_EQ(op->op, "plateau::planted_leak/aten::empty");
    EXPECT_EQ(op->allocation_events, kept);
    EXPECT_EQ(op->allocated_bytes, kept * 4096);
    EXPECT_EQ(op->free_events, 0);
    EXPECT_THAT(r.warnings, ElementsAre(HasSubstr("a fault was planted in this case: leak:rank=3,bytes=4096")));
  }
}

TEST(planted_leak, ends_with_its_case) {
  real_worker worker;
  worker.greet(planted_job({"leak:case=eager.c2,every=1"}));
  auto const first = worker.run({"eager", 2}).measured->pre;
  auto const next = worker.run({"arena", 1}); // where none is planted
  EXPECT_EQ(worker.run({"eager", 2}).measured->pre.allocated_bytes, first.allocated_bytes);
  EXPECT_THAT(allocated_in_soak(next), testing::Each(0));
  EXPECT_EQ(leak_of(next), nullptr);
  EXPECT_THAT(next.warnings, IsEmpty());
}

TEST(planted_leak, begins_after_so_many_requests_of_the_timed_window) {
  real_worker worker;
  worker.greet(planted_job({"leak:after=50,every=5,bytes=512"}));
  auto const r = worker.run({"arena", 1});
  EXPECT_EQ(r.measured->post.allocated_bytes, r.measured->pre.allocated_bytes);
  EXPECT_THAT(allocated_in_soak(r), ElementsAre(0, 0, 1024, 2048, 3072));
}

TEST(planted_fault, of_another_rank_or_case_leaves_a_case_alone) {
  real_worker worker;
  worker.greet(planted_job({"leak:rank=2,every=1", "crash:case=arena.c1", "hang:rank=0", "oom:rank=4"}));
  auto const r = worker.run({"eager", 2});
  EXPECT_THAT(allocated_in_soak(r), testing::Each(0));
  EXPECT_EQ(leak_of(r), nullptr);
  EXPECT_THAT(r.warnings, IsEmpty());
}

TEST(planted_slowness, takes_at_least_its_milliseconds_in_each_request_after_those_that_it_spares) {
  real_worker worker;
  worker.greet(planted_job({"slow:ms=2,after=10"}));
  auto const r = worker.run({"eager", 1});
  auto const& latency = r.measured->latency_ns[0];
  EXPECT_TRUE(std::all_of(latency.begin() + 10, latency.end(), [](auto ns) { return ns >= 2'000'000; }));
  EXPECT_LT(*std::min_element(latency.begin(), latency.begin() + 10), 2'000'000);
  EXPECT_THAT(r.warnings, ElementsAre(HasSubstr("slow:ms=2,after=10")));
}

TEST(planted_slowness, doubles_a_request_when_no_milliseconds_are_given) {
  real_worker worker;
  auto j = planted_job({"slow:case=eager.c1,after=20"}); // the case is its own yardstick
  j.hidden = 256;
  worker.greet(j);
  auto const latency = worker.run({"eager", 1}).measured->latency_ns[0];
  auto const least = [&](auto from, auto to) {
    return *std::min_element(latency.begin() + from, latency.begin() + to);
  };
  EXPECT_GT(static_cast<double>(least(20, 40)), 1.5 * static_cast<double>(least(0, 20)));
}

TEST(planted_oom, is_the_allocator_s_own_and_leaves_a_worker_that_goes_on) {
  real_worker worker;
  worker.greet(planted_job({"oom:rank=3,case=eager.c2,after=5"}));
  auto const failure = failure_of(worker, {"eager", 2});
  EXPECT_EQ(failure.status, case_status::out_of_memory);
  EXPECT_THAT(failure.reason, HasSubstr("out of memory. Tried to allocate"));
  EXPECT_GE(worker.seen().threads[0].requests, before_the_gate + 5);
  EXPECT_EQ(worker.run({"arena", 1}).status, case_status::passed);
}

TEST(planted_device_error, fails_its_case_on_the_cpu_whose_worker_goes_on) {
  real_worker worker;
  worker.greet(planted_job({"device_error:case=eager.c2,after=5"}));
  auto const failure = failure_of(worker, {"eager", 2});
  EXPECT_EQ(failure.status, case_status::failed);
  EXPECT_THAT(failure.reason, HasSubstr("out of range"));
  EXPECT_EQ(worker.run({"arena", 1}).status, case_status::passed);
}

TEST(planted_crash, ends_the_worker_by_sigsegv_in_the_timed_window) {
  real_worker worker;
  worker.greet(planted_job({"crash:after=5"}));
  worker.send(protocol::prepare{{"eager", 2}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  EXPECT_FALSE(worker.receive().has_value());
  EXPECT_EQ(worker.exit_code(), -SIGSEGV);
  EXPECT_EQ(worker.seen().now, phase::timed);
  EXPECT_EQ(worker.seen().threads[0].requests, before_the_gate + 5);
}

TEST(planted_hang, stops_one_thread_while_the_others_finish_and_nothing_more_is_said) {
  real_worker worker;
  worker.greet(planted_job({"hang:after=5"}));
  worker.send(protocol::prepare{{"eager", 2}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  while (worker.seen().threads[1].requests < before_the_gate + timed)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(worker.says_something_within(std::chrono::milliseconds(300)));
  EXPECT_EQ(worker.seen().now, phase::timed);
  EXPECT_EQ(worker.seen().threads[0].requests, before_the_gate + 5);
}

TEST(planted_garbage, is_refused_by_whoever_reads_frames) {
  real_worker worker;
  worker.greet(planted_job({"garbage"}));
  worker.send(protocol::prepare{{"eager", 1}});
  worker.receive_a<protocol::ready>();
  worker.send(protocol::start{});
  EXPECT_THROW(worker.receive(), format_error);
}

TEST(soak_by_seconds, has_its_windows_and_the_tracked_one_of_the_usual_size) {
  auto j = planted_job({});
  j.soak = {windows, {}, 0.4};
  real_worker worker;
  worker.greet(j);
  auto const r = worker.run({"eager", 2});
  auto const& soak = r.measured->soak;
  ASSERT_EQ(std::ssize(soak), windows + 1);
  for (std::size_t w = 1; w < soak.size(); ++w) {
    EXPECT_GE(soak[w].requests, soak[w - 1].requests + 2);
    EXPECT_GE(soak[w].elapsed_ns, static_cast<std::int64_t>(w) * 100'000'000);
  }
  EXPECT_EQ(r.measured->tracked->requests, 2 * requests_per_soak_window(j));
}

} // namespace
