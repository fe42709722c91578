// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/compiled.hpp"
#include "worker/modes/table.hpp"

#include <ATen/Version.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace plateau {

namespace {

using loader = torch::inductor::AOTIModelPackageLoader;

class compiled_executor final : public executor {
public:
  compiled_executor(loader& l, bool& ran, stream& s, at::Tensor input)
      : executor(s), loader_(l), ran_(ran), inputs_{std::move(input)} {}

  // The first run after a load must be alone: with others beside it, it was seen to hang. It and the others of the
  // first round take a fresh runner each, so that one-offs are over before anything is measured.
  void settle() override {
    for (int twice = 0; twice < 2; ++twice) run_once();
    ran_ = true;
  }
  void submit() override { output_ = std::move(loader_.run(inputs_).front()); }
  void drop() override { output_.reset(); }
  at::Tensor output() const override { return output_; }

private:
  loader& loader_;
  bool& ran_;
  std::vector<at::Tensor> const inputs_;
  at::Tensor output_;
};

// The container of a package with one runner for each stream thread, so that none waits for another.
std::unique_ptr<loader> load(compiled_package const& found, mode_input const& in) try {
  return std::make_unique<loader>(found.file.string(), "model", /*run_single_threaded=*/false,
                                  /*num_runners=*/static_cast<std::size_t>(in.id.concurrency),
                                  in.dev.torch_device().index());
} catch (c10::Error const& error) {
  throw std::runtime_error("the compiled package " + found.file.string() + " cannot be loaded: " +
                           error.what_without_backtrace() + "; remove it and it is compiled again");
}

// Lets the package use eager's weights. A load leaks a reference to each tensor that it is given
// (Torch 2.11), so it is given views that own nothing: only their few bytes are lost.
void share_weights(loader& l, mode_input const& in) {
  std::unordered_map<std::string, at::Tensor> constants;
  for (std::size_t i = 0; i < in.prog.values.size(); ++i)
    if (auto const& weight = in.weights[i]; weight.defined())
      constants.emplace(in.prog.values[i].name, at::from_blob(weight.data_ptr(), weight.sizes(), weight.options()));
  l.load_constants(constants, /*use_inactive=*/false, /*check_full_update=*/true, /*user_managed=*/true);
}

class compiled final : public prepared_mode {
public:
  compiled(compiled_package found, mode_input const& in) : found_(std::move(found)), loader_(load(found_, in)) {
    share_weights(*loader_, in);
  }

  std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) override {
    return std::make_unique<compiled_executor>(*loader_, ran_, s, std::move(input));
  }

  std::optional<package_info> package() const override { return ran_ ? std::optional(found_.info) : std::nullopt; }

private:
  compiled_package found_;
  std::unique_ptr<loader> loader_;
  bool ran_ = false;
};

// The CPU's instruction sets as the kernel lists them: Inductor compiles for exactly these.
std::string cpu_architecture(device_info const& info) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  while (std::getline(file, flags))
    if (flags.starts_with("flags") || flags.starts_with("Features")) break;
  return info.name + "; " + at::get_cpu_capability() + "; " + flags;
}

// The compiler chooses by the number of multiprocessors, too.
std::string gpu_architecture(device_info const& info) {
  auto sm = info.compute_capability.value_or("unknown");
  std::erase(sm, '.');
  return "sm_" + sm + (info.multiprocessors ? ", " + std::to_string(*info.multiprocessors) + " SMs" : "");
}

// The compiler is to see the worker's own device alone, or it would put its tensors on another rank's.
compile_site this_site(device_info const& info) {
  if (!info.index) return {info.name, "own device", info.name + ", " + at::get_cpu_capability(), {}};
  auto own = std::to_string(*info.index);
  if (auto const* const set = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream list(set);
    for (std::int64_t i = 0; i <= *info.index; ++i) std::getline(list, own, ',');
  }
  return {info.name,
          info.pretended.value_or(false) ? "pretend GPU" : "own device",
          gpu_architecture(info),
          {{"CUDA_VISIBLE_DEVICES", own}}};
}

package_spec spec_of(std::string_view mode, job const& run, program_entry const& entry, device_info const& device) {
  if (entry.python_twin.empty()) throw unsupported(std::string(entry.name) + " has no compiled form");
  return {.program = std::string(entry.name),
          .twin = std::string(entry.python_twin),
          .dtype = std::string(dtype_name(run)),
          .hidden = run.hidden,
          .batch = run.batch,
          .seq_len = run.seq_len,
          .use_inplace_residual = run.use_inplace_residual,
          .compile_mode = run.compile_mode,
          .gemm_backends = mode == "compiled_aten" ? "ATEN" : run.inductor_gemm_backends,
          .intra_op_threads = run.intra_op_threads,
          .device = device.kind,
          .architecture = device.kind == "cpu" ? cpu_architecture(device) : gpu_architecture(device),
          .torch = TORCH_VERSION,
          .for_rehearsal = false};
}

// A rehearsal takes a package that was compiled ahead. One that it has compiled itself stays among rehearsals: nobody
// asked for kernels that were chosen without timing them, and they would be in the way of a measurement on a real GPU.
std::unique_ptr<prepared_mode> prepare(std::string_view mode, mode_input const& in) try {
  auto const device = in.dev.info();
  auto spec = spec_of(mode, in.run, in.entry, device);
  spec.for_rehearsal = device.pretended.value_or(false) && !find_package(spec);
  return std::make_unique<compiled>(find_or_compile(spec, in.compiling, this_site(device)), in);
} catch (compile_error const& error) {
  throw unsupported(error.what());
}

} // namespace

bool runs_a_package(std::string_view mode) { return mode == "compiled" || mode == "compiled_aten"; }

compiled_package compile_ahead(std::string_view mode, job const& run, program_entry const& entry,
                               device_info const& device, std::function<void(bool)> const& compiling) try {
  return find_or_compile(spec_of(mode, run, entry, device), compiling, this_site(device));
} catch (compile_error const& error) {
  throw unsupported(error.what());
}

std::unique_ptr<prepared_mode> prepare_compiled(mode_input const& in) { return prepare("compiled", in); }
std::unique_ptr<prepared_mode> prepare_compiled_aten(mode_input const& in) { return prepare("compiled_aten", in); }

} // namespace plateau
