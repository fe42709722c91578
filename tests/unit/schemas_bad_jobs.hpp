// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace plateau {

/// A job of one wrong field: its text, and the pointer at which it must be refused. All of these rules are in
/// the JSON Schema too, so that an independent validator must refuse them as well.
struct bad_job {
  std::string_view text, where;
};

inline constexpr std::array bad_jobs{
    bad_job{R"({"hiden": 256})", "/hiden"},
    bad_job{R"({"": 1})", "/"},
    bad_job{R"({"name": ""})", "/name"},
    bad_job{R"({"name": 5})", "/name"},
    bad_job{R"({"workload": "resnet"})", "/workload"},
    bad_job{R"({"workload": ["noop"]})", "/workload"},
    bad_job{R"({"device": "gpu"})", "/device"},
    bad_job{R"({"device": "CPU"})", "/device"},
    bad_job{R"({"device": null})", "/device"},
    bad_job{R"({"dtype": "float64"})", "/dtype"},
    bad_job{R"({"dtype": "torch.float"})", "/dtype"},
    bad_job{R"({"dtype": null})", "/dtype"},
    bad_job{R"({"hidden": 0})", "/hidden"},
    bad_job{R"({"hidden": -1})", "/hidden"},
    bad_job{R"({"hidden": 65537})", "/hidden"},
    bad_job{R"({"hidden": 256.5})", "/hidden"},
    bad_job{R"({"hidden": "256"})", "/hidden"},
    bad_job{R"({"hidden": true})", "/hidden"},
    bad_job{R"({"batch": 18446744073709551616})", "/batch"},
    bad_job{R"({"seq_len": -9223372036854775809})", "/seq_len"},
    bad_job{R"({"warmup": -1})", "/warmup"},
    bad_job{R"({"requests_per_worker": 0})", "/requests_per_worker"},
    bad_job{R"({"requests_per_worker": 1e3})", "/requests_per_worker"},
    bad_job{R"({"concurrency_levels": []})", "/concurrency_levels"},
    bad_job{R"({"concurrency_levels": 4})", "/concurrency_levels"},
    bad_job{R"({"concurrency_levels": [4, 0]})", "/concurrency_levels/1"},
    bad_job{R"({"concurrency_levels": [4, 4]})", "/concurrency_levels/1"},
    bad_job{R"({"concurrency_levels": [1025]})", "/concurrency_levels/0"},
    bad_job{R"({"concurrency_levels": [[4]]})", "/concurrency_levels/0"},
    bad_job{R"({"modes": []})", "/modes"},
    bad_job{R"({"modes": ["eager", "arean"]})", "/modes/1"},
    bad_job{R"({"modes": ["eager", "eager"]})", "/modes/1"},
    bad_job{R"({"modes": "eager"})", "/modes"},
    bad_job{R"({"compile_mode": "fast"})", "/compile_mode"},
    bad_job{R"({"inductor_gemm_backends": ""})", "/inductor_gemm_backends"},
    bad_job{R"({"allow_tf32": "yes"})", "/allow_tf32"},
    bad_job{R"({"allow_tf32": 1})", "/allow_tf32"},
    bad_job{R"({"use_inplace_residual": null})", "/use_inplace_residual"},
    bad_job{R"({"random_seed": -1})", "/random_seed"},
    bad_job{R"({"repeats": 0})", "/repeats"},
    bad_job{R"({"intra_op_threads": 0})", "/intra_op_threads"},
    bad_job{R"({"isolation": "process"})", "/isolation"},
    bad_job{R"({"stream_threads": "new"})", "/stream_threads"},
    bad_job{R"({"sync": "wait"})", "/sync"},
    bad_job{R"({"soak": 12})", "/soak"},
    bad_job{R"({"soak": {"windows": -1}})", "/soak/windows"},
    bad_job{R"({"soak": {"window": 1}})", "/soak/window"},
    bad_job{R"({"soak": {"requests_per_window": 0}})", "/soak/requests_per_window"},
    bad_job{R"({"soak": {"seconds": 0}})", "/soak/seconds"},
    bad_job{R"({"soak": {"seconds": 604801}})", "/soak/seconds"},
    bad_job{R"({"soak": {"seconds": "1h"}})", "/soak/seconds"},
    bad_job{R"({"inject": "leak"})", "/inject"},
    bad_job{R"({"inject": [""]})", "/inject/0"},
    bad_job{R"({"inject": ["leak", "leak"]})", "/inject/1"},
    bad_job{R"({"inject": [{"leak": 1}]})", "/inject/0"},
    bad_job{R"({"env": ["A=1"]})", "/env"},
    bad_job{R"({"env": {"A": 1}})", "/env/A"},
    bad_job{R"({"timeouts_s": {"stall": 0}})", "/timeouts_s/stall"},
    bad_job{R"({"timeouts_s": {"stall": -0.5}})", "/timeouts_s/stall"},
    bad_job{R"({"timeouts_s": {"stall": 604801}})", "/timeouts_s/stall"},
    bad_job{R"({"timeouts_s": {"stall": "1m"}})", "/timeouts_s/stall"},
    bad_job{R"({"timeouts_s": {"total": 5}})", "/timeouts_s/total"},
};

} // namespace plateau
