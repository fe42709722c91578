// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/memory/cpu_allocator.hpp"
#include "worker/modes/mode.hpp"

#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plateau::testing {

/// A stream that only names itself to the allocator.
class named_stream final : public stream {
public:
  explicit named_stream(std::int64_t number) : number_(number) {}
  void enter() override { cpu_allocator::enter_stream(number_); }
  void wait() override {}

private:
  std::int64_t number_;
};

/// The measured allocator and nothing else of a device.
class bare_cpu final : public device {
public:
  device_info info() const override {
    device_info about;
    about.kind = "cpu";
    about.name = "a CPU under test";
    return about;
  }
  c10::Device torch_device() const override { return c10::kCPU; }
  std::unique_ptr<stream> make_stream() override { return std::make_unique<named_stream>(++streams_); }
  void wait_idle() override {}
  counters read_counters() const override { return allocator_.read(); }
  void reset_peak() override { allocator_.reset_peak(); }
  std::optional<std::string> counters_unavailable() const override { return std::nullopt; }
  std::int64_t outside_bytes() const override { return 0; }

private:
  cpu_allocator& allocator_ = install_cpu_allocator();
  std::int64_t streams_ = 0;
};

/// A case made ready as the worker does it: weights, inputs, the mode, an executor for each stream thread.
struct ready_case {
  job run;
  case_id id;
  program_entry const& entry;
  program prog;
  bare_cpu dev;
  std::vector<at::Tensor> weights, inputs;
  std::vector<bool> told; ///< what mode_input.compiling was called with
  std::vector<std::unique_ptr<stream>> streams;
  std::unique_ptr<prepared_mode> mode;
  std::vector<std::unique_ptr<executor>> executors;
  c10::InferenceMode inference;

  ready_case(job j, std::string mode_name, std::int64_t threads = 1)
      : run(std::move(j)), id{std::move(mode_name), threads}, entry(program_named(run.workload)),
        prog(entry.make(run)) {
    weights = make_weights(prog, run, dev.torch_device());
    mode =
        mode_named(id.mode).prepare({run, id, prog, entry, weights, dev, [this](bool busy) { told.push_back(busy); }});
    for (std::int64_t t = 0; t < threads; ++t) {
      auto& s = *streams.emplace_back(dev.make_stream());
      s.enter();
      inputs.push_back(make_input(prog, run, dev.torch_device(), 0, t));
      executors.push_back(mode->make_executor(s, inputs.back()));
    }
    for (std::size_t t = 0; t < executors.size(); ++t) {
      streams[t]->enter();
      executors[t]->settle();
    }
  }
};

/// Relative L2 distance.
inline double error_of(at::Tensor const& got, at::Tensor const& reference) {
  return got.to(at::kDouble).sub(reference).norm().item<double>() / reference.norm().item<double>();
}

/// A job of a size that a test can afford.
inline job small_job(std::string dtype = "float32") {
  job j;
  j.device = "cpu";
  j.dtype = std::move(dtype);
  j.hidden = 32, j.batch = 3, j.seq_len = 7;
  return j;
}

} // namespace plateau::testing
