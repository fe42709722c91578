// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

/// AOTInductor packages: compiled once by Python, kept in a cache, found again by everything that changes
/// them. Knows no Torch.
namespace plateau {

/// What a package is compiled from, and for which device.
struct package_spec {
  std::string program; ///< its name
  std::string twin;    ///< source of the Python module that makes the model
  std::string dtype;   ///< "float32"
  std::int64_t hidden = 0, batch = 0, seq_len = 0;
  bool use_inplace_residual = false;
  std::string compile_mode;          ///< "default" or "max-autotune"
  std::string gemm_backends;         ///< "ATEN", or several as in "ATEN,TRITON"
  std::int64_t intra_op_threads = 1; ///< compiled into the package
  std::string device;                ///< "cpu" or "cuda"
  std::string architecture;          ///< the device's, exactly: a package is used on no other
  std::string torch;                 ///< version that loads the package; Python's must be the same
  bool for_rehearsal = false;        ///< never given out for anything that is timed

  template <class Visit>
  friend void describe(package_spec& x, Visit&& visit) {
    visit("program", x.program);
    visit("twin", x.twin);
    visit("dtype", x.dtype);
    visit("hidden", x.hidden);
    visit("batch", x.batch);
    visit("seq_len", x.seq_len);
    visit("use_inplace_residual", x.use_inplace_residual);
    visit("compile_mode", x.compile_mode);
    visit("gemm_backends", x.gemm_backends);
    visit("intra_op_threads", x.intra_op_threads);
    visit("device", x.device);
    visit("architecture", x.architecture);
    visit("torch", x.torch);
    visit("for_rehearsal", x.for_rehearsal);
  }
};

/// Where and how a package is compiled; no part of its key.
struct compile_site {
  std::string device;                             ///< the name of the device that the compiler is to see
  std::string by;                                 ///< as package_info.compiled_by
  std::string architecture;                       ///< of the device, in words
  std::map<std::string, std::string> environment; ///< set for the compiler on top of this process's own
};

struct compiled_package {
  std::filesystem::path file;
  package_info info;
};

/// There is no package, and why: no Python, no C++ compiler, or the compiler's own reason, with its log's
/// path.
struct compile_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The spec's package, if it is in the cache and whole. Throws compile_error when the cache cannot be used.
std::optional<compiled_package> find_package(package_spec const& spec);

/// The spec's package, from the cache or compiled now. Processes of one node that want the same package
/// compile it once: the others wait. `compiling` is told true before a wait or a compilation, false after,
/// however it ended. A package that is not whole is compiled again. Throws compile_error.
///
/// The cache is $PLATEAU_CACHE, else $XDG_CACHE_HOME/plateau, else ~/.cache/plateau. Python is
/// $PLATEAU_PYTHON, else the one whose Torch this was built with; the C++ compiler is $CXX, else g++.
compiled_package find_or_compile(package_spec const& spec, std::function<void(bool)> const& compiling,
                                 compile_site const& here);

} // namespace plateau
