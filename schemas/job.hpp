// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_id.hpp"
#include "schemas/error.hpp"
#include "schemas/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// The memory phase that follows the timed one.
struct soak_plan {
  std::int64_t windows = 12;                       ///< 0: no soak
  std::optional<std::int64_t> requests_per_window; ///< per stream thread; absent: max(10, requests_per_worker / 4)
  std::optional<double> seconds; ///< of all windows together, which then end by time; not with requests_per_window
};

/// Deadlines in seconds.
struct deadlines {
  double compile = 900;   ///< compiling a package, or waiting for another rank of the node that compiles it
  double prepare = 300;   ///< starting a worker; building weights, inputs and the mode; the output check
  double stall = 120;     ///< a stream thread that completes no request
  double collective = 60; ///< a rank that gives the others no sign of life
  double fabric = 120;    ///< the fabric check, all of it
};

/// What the user asks for. Every member has a default; the seed's value where the seed's result file has one.
struct job {
  std::string name;
  std::string workload = "encoder_block";
  std::string device = "auto";
  std::optional<std::string> dtype; ///< absent: float16 on CUDA, float32 on the CPU; echoed as written
  std::int64_t hidden = 1024, batch = 16, seq_len = 128;
  std::int64_t warmup = 30, requests_per_worker = 120; ///< per stream thread, untimed and timed
  std::vector<std::int64_t> concurrency_levels{4, 8};  ///< stream threads per device
  std::vector<std::string> modes{"eager", "compiled_aten", "arena"};
  std::string compile_mode = "default";
  std::string inductor_gemm_backends = "ATEN";
  bool allow_tf32 = false;
  bool use_inplace_residual = false;
  std::int64_t random_seed = 0;
  std::int64_t repeats = 1;
  std::int64_t intra_op_threads = 1;
  std::string isolation = "case";
  std::string stream_threads = "persistent";
  std::string sync = "spin";
  std::string fabric = "auto"; ///< "auto", "check" or "off"
  soak_plan soak;
  std::map<std::string, std::string> env;
  deadlines timeouts_s;
  std::vector<std::string> inject; ///< planted faults as written; schemas/injection.hpp reads them
};

/// One thing that is wrong with a job: where (a JSON pointer or a flag), and what in words.
struct problem {
  std::string where, what;
};

/// One field of the job. This table alone drives JSON in and out, command-line flags, help, docs and the JSON
/// Schema.
struct job_field {
  std::string_view name; ///< its JSON key; its flag is --name with dashes for underscores
  std::string_view help;
  json schema;                    ///< a JSON Schema fragment; what check_value understands of it
  json (*get)(job const&);        ///< null: absent
  void (*set)(job&, json const&); ///< called only with a value that satisfies schema and check
  /// Appends what is wrong with a value that satisfies the schema, where a schema cannot say it. May be null.
  void (*check)(json const& value, std::string const& where, std::vector<problem>& problems) = nullptr;
  bool flag_adds = false; ///< a list whose items hold commas: each flag adds one item
  /// Keys of which one excludes the others: a flag that gives one drops what the others were before.
  std::vector<std::string_view> alternatives = {};
};

std::span<job_field const> job_fields();

/// The command-line flag of a field: "--seq-len" for "seq_len".
std::string flag_of(std::string_view field);

/// A job was refused. Holds every problem found; its text lists them as a user reads them.
struct job_error : input_error {
  job_error(std::string const& source, std::vector<problem> problems);
  std::vector<problem> problems;
};

/// A value given on the command line for one field, as typed: a plain value, a list "4,8", pairs
/// "windows=4,...", or JSON. Pairs change those keys and their alternatives alone; of plain values and lists the last
/// one counts, except that each of a field whose flag_adds is one item more.
struct job_override {
  std::string field, text;
};

/// Reads a job from JSON text. A plateau summary or the seed's result file is accepted: its `meta` is the
/// job. `source` names the text in messages; its stem is the job's name when the job has none. Throws
/// job_error with all problems of text and overrides together.
job parse_job(std::string_view text, std::string const& source, std::span<job_override const> overrides = {});

/// Every field, defaults included, in the table's order. parse_job reads it back to the same job.
json to_json(job const& j);

/// A field, or a key of one, that is not the same in two jobs; null where one lacks it.
struct job_difference {
  std::string where; ///< a JSON pointer: "/soak/windows"
  json before, after;
};

/// All differences between two jobs, in the order of the table.
std::vector<job_difference> differences(job const& before, job const& after);

/// "/hidden: 256 in the run, 512 now", one difference a line; `before` and `after` say where the values are.
std::string told(std::span<job_difference const> all, std::string_view before, std::string_view after);

/// The job's grid in the order in which it runs: repeats outermost, then modes, then concurrency levels.
std::vector<case_id> cases_of(job const& j);

/// The job with what its device decides filled in. `device` is "cuda" or "cpu".
job resolved_for(job j, std::string_view device);

/// Requests per stream thread in a soak window; of a soak by seconds in the tracked window alone, and at most 1000.
std::int64_t requests_per_soak_window(job const& j);

/// The plain name of a resolved job's dtype: "float16".
std::string_view dtype_name(job const& j);

/// dtype without PyTorch's prefix: "torch.float16" is "float16".
std::string_view plain_dtype(std::string_view dtype);

/// The JSON Schema (draft 7) of a job file, generated from the table.
json job_schema();

} // namespace plateau
