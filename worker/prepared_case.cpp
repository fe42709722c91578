// SPDX-License-Identifier: Apache-2.0
#include "worker/prepared_case.hpp"

#include "schemas/host.hpp"
#include "worker/device/process_memory.hpp"
#include "worker/load/clock.hpp"
#include "worker/memory/attribution.hpp"
#include "worker/memory/cpu_allocator.hpp"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace plateau {

namespace {

thread_life thread_life_of(job const& run) {
  return run.stream_threads == "fresh" ? thread_life::fresh : thread_life::persistent;
}

// Neither InferenceMode nor the number of intra-op threads is inherited by a new thread.
thread_setup set_up_for(std::vector<std::unique_ptr<stream>> const& streams) {
  return [&streams](std::size_t thread, std::function<void()> const& rest) {
    c10::InferenceMode const inference;
    at::init_num_threads();
    streams[thread]->enter();
    rest();
  };
}

std::string wrong_output(std::size_t thread, case_id const& id, std::string_view when, output_error const& error,
                         double tolerance) {
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "relative L2 error %.3g, relative maximum error %.3g, tolerance %.3g",
                error.relative_l2, error.relative_max, tolerance);
  return "the output of stream thread " + std::to_string(thread) + " in " + id.text() + " is wrong " +
         std::string(when) + ": " + numbers + " against the program in float64";
}

} // namespace

prepared_case::prepared_case(worker_context const& context, case_id id)
    : context_(context), id_(std::move(id)), started_(utc_now()), begin_ns_(now_ns()), warnings_(context.warnings),
      entry_(program_named(context.run.workload)), program_(entry_.make(context.run)) {
  now_in(phase::preparing);
  context_.main_stream.enter();
  make_workspace();
  compute_references();
  warm_up();
  check_outputs("before the timed window");
  series_ = make_series(threads(), static_cast<std::size_t>(context.run.requests_per_worker));
  now_in(phase::waiting);
}

void prepared_case::keep_clocks_up(std::function<bool()> const& is_over) {
  if (!context_.dev.slows_when_idle()) return;
  now_in(phase::keeping_clocks);
  try {
    clock_requests_ = engine_->serve_until(is_over);
  } catch (...) {
    failed_at_the_gate_ = std::current_exception();
  }
  context_.main_stream.enter();
  now_in(phase::waiting);
}

case_result prepared_case::run(std::function<void(memory_point const&)> const& report) {
  if (failed_at_the_gate_) std::rethrow_exception(failed_at_the_gate_);
  measurement m;
  arm_faults(true);
  measure_timed(m);
  soak(m, report);
  arm_faults(false);
  now_in(phase::finishing);
  check_outputs("after the timed window");
  m.harness_ns = harness_cost_ns();

  case_result result;
  result.run_id = context_.run_id;
  result.id = id_;
  result.rank = context_.rank;
  result.status = case_status::passed;
  result.started = started_;
  result.warnings = warnings_;
  result.device = context_.dev.info();
  result.arena_kind = mode_->arena_kind();
  result.package = mode_->package();
  result.compile_applied = result.package.has_value();
  result.outputs = outputs_;
  result.measured = std::move(m);
  result.seconds = static_cast<double>(now_ns() - begin_ns_) * 1e-9;
  return result;
}

// Weights and inputs are made on the main stream, each thread's own things on its stream.
void prepared_case::make_workspace() {
  auto const& run = context_.run;
  auto const where = context_.dev.torch_device();
  weights_ = make_weights(program_, run, where);
  for (std::size_t t = 0; t < threads(); ++t) {
    streams_.push_back(context_.dev.make_stream());
    inputs_.push_back(make_input(program_, run, where, context_.rank, static_cast<std::int64_t>(t)));
  }
  auto const compiling = [this](bool begun) { now_in(begun ? phase::compiling : phase::preparing); };
  mode_ = mode_named(id_.mode).prepare({run, id_, program_, entry_, weights_, context_.dev, compiling});
  for (std::size_t t = 0; t < threads(); ++t) {
    streams_[t]->enter();
    executors_.push_back(mode_->make_executor(*streams_[t], inputs_[t]));
  }
  context_.main_stream.enter();
  engine_.emplace(make_requests(), set_up_for(streams_), thread_life_of(run), context_.shared);
  settle();
}

// One thread after the other. Fresh threads first come into being in the timed window: until then the main thread
// stands for them.
void prepared_case::settle() {
  for (std::size_t t = 0; t < threads(); ++t) {
    auto& own = *executors_[t];
    if (thread_life_of(context_.run) == thread_life::fresh)
      set_up_for(streams_)(t, [&own] { own.settle(); });
    else
      engine_->run_untimed(0, [&own, t](std::size_t thread, std::function<void()> const&) {
        if (thread == t) own.settle();
      });
  }
  context_.main_stream.enter();
}

// The executors, each within the faults that are planted on its thread.
std::vector<request*> prepared_case::make_requests() {
  std::vector<request*> requests;
  for (auto const& e : executors_) requests.push_back(e.get());
  for (auto const& planted : injections_for(context_.run, id_, context_.rank)) {
    warnings_.push_back(warning_about(planted));
    for (std::size_t t = 0; t < threads(); ++t) {
      auto fault = make_fault(planted, t, context_.dev);
      if (!fault) continue;
      faulty_.push_back(std::make_unique<faulty_request>(*requests[t], std::move(fault), planted.after));
      requests[t] = faulty_.back().get();
    }
  }
  return requests;
}

void prepared_case::arm_faults(bool armed) {
  for (auto const& f : faulty_) f->arm(armed);
}

void prepared_case::warm_up() {
  now_in(phase::warming_up);
  engine_->warm_up(context_.run.warmup);
  context_.main_stream.enter();
  context_.dev.wait_idle();
  now_in(phase::preparing);
}

void prepared_case::compute_references() {
  if (program_.ops.empty())
    outputs_.why_not = program_.name + " has no output";
  else
    outputs_.why_not = context_.dev.outputs_unavailable();
  outputs_.checked = !outputs_.why_not;
  if (!outputs_.checked) return;
  outputs_.tolerance = output_tolerance(context_.run);
  unmeasured const own;
  for (auto const& input : inputs_)
    references_.push_back(copy_output(reference_output(program_, weights_, input)).elements);
}

// Fresh threads first come into being in the timed window: until then the requests run on the main thread, in turn.
void prepared_case::check_outputs(std::string_view when) {
  if (!outputs_.checked) return;
  std::vector<output_copy> copies(threads());
  auto const look = [&](std::size_t t) { copies[t] = copy_output(executors_[t]->output()); };
  bool const first = outputs_.digests.empty();
  if (first && thread_life_of(context_.run) == thread_life::fresh)
    engine_->look_at_results_in_turn(look);
  else
    engine_->look_at_results(look);
  context_.main_stream.enter();
  for (std::size_t t = 0; t < threads(); ++t) judge_output(t, copies[t], when);
}

void prepared_case::judge_output(std::size_t thread, output_copy const& output, std::string_view when) {
  auto const error = distance(output.elements, references_[thread]);
  if (std::max(error.relative_l2, error.relative_max) > outputs_.tolerance)
    throw std::runtime_error(wrong_output(thread, id_, when, error, outputs_.tolerance));
  outputs_.relative_l2 = std::max(outputs_.relative_l2, error.relative_l2);
  outputs_.relative_max = std::max(outputs_.relative_max, error.relative_max);
  if (outputs_.digests.size() <= thread)
    outputs_.digests.push_back(output.digest);
  else if (outputs_.digests[thread] != output.digest)
    warnings_.push_back("stream thread " + std::to_string(thread) +
                        " gave other bits after the timed window than before it (both within tolerance)");
}

void prepared_case::measure_timed(measurement& m) {
  auto& dev = context_.dev;
  dev.wait_idle();
  auto const before = dev.read_sensors();
  dev.reset_peak();
  m.pre = dev.read_counters();
  m.outside_pre_bytes = dev.outside_bytes();

  now_in(phase::timed);
  engine_->run_timed(series_);

  m.post = quiet_counters();
  m.outside_post_bytes = dev.outside_bytes();
  m.counters_unavailable = dev.counters_unavailable();
  if (before) m.gpu = gpu_course{*before, dev.read_sensors().value_or(gpu_state{}), {}};
  m.clock_requests = clock_requests_;
  m.start_ns = std::move(series_.start_ns);
  m.latency_ns = std::move(series_.latency_ns);
  m.gate_ns = series_.gate_ns;
  m.wall_ns = series_.wall_ns;
}

void prepared_case::soak(measurement& m, std::function<void(memory_point const&)> const& report) {
  auto const windows = context_.run.soak.windows;
  if (windows == 0) return;
  auto const requests_each = requests_per_soak_window(context_.run);
  now_in(phase::soaking);
  m.soak.resize(static_cast<std::size_t>(windows) + 1); // written now: its pages must not be the growth it shows
  auto next = m.soak.begin();
  auto const at_rest = [&](std::int64_t requests, std::int64_t elapsed_ns) {
    *next = quiet_point(requests, elapsed_ns);
    report(*next++);
  };
  if (auto const seconds = context_.run.soak.seconds)
    engine_->soak_for(windows, static_cast<std::int64_t>(*seconds * 1e9), at_rest);
  else
    engine_->soak(windows, requests_each, at_rest);
  if (m.gpu) m.gpu->after_soak = context_.dev.read_sensors();
  m.tracked = track(requests_each);
}

// A window of its own after the soak: tracking costs time, and its bookkeeping memory.
attribution prepared_case::track(std::int64_t requests_each) {
  attribution a;
  a.requests = requests_each * id_.concurrency;
  a.pre = quiet_counters();
  start_tracking();
  try {
    engine_->run_untimed(requests_each, [](std::size_t, std::function<void()> const& rest) {
      op_tracker const operators;
      rest();
    });
  } catch (...) {
    stop_tracking();
    throw;
  }
  context_.dev.wait_idle();
  a.ops = stop_tracking();
  a.post = quiet_counters();
  return a;
}

counters prepared_case::quiet_counters() {
  context_.dev.wait_idle();
  return context_.dev.read_counters();
}

memory_point prepared_case::quiet_point(std::int64_t requests, std::int64_t elapsed_ns) {
  auto const allocator = quiet_counters();
  return {requests, elapsed_ns, allocator, context_.dev.outside_bytes(), read_process_memory().resident_bytes};
}

} // namespace plateau
