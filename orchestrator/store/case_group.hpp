// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/store/hdf5.hpp"
#include "schemas/case_result.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <vector>

namespace plateau {

/// The group of one case in run.h5, written rank by rank so that no more than one rank's samples are in
/// memory. Its `rank` coordinate lists the ranks that measured something, a memory curve that broke off
/// included. A rehearsal's has no times. docs/results.md describes what is in it.
class case_group {
public:
  /// The case of info's run; `run` is its job.
  case_group(h5::node const& file, run_info const& info, job const& run, case_id const& id);

  /// The next rank's result, samples included, in ascending order of ranks.
  void add(case_result const& result);

  /// Everything but the samples. `record` may have dropped them.
  void finish(case_record const& record);

private:
  /// The datasets that hold a row for each rank, made with the first of them.
  struct rank_rows {
    h5::node rank, thread, request, latency_ns, start_ns, count;
  };

  void create_rows();
  void create_samples();
  void write_attributes(case_record const& record);
  void write_counters(case_record const& record);
  void write_per_rank(case_record const& record);
  void write_times(case_record const& record);
  void write_soak(case_record const& record);
  void write_attribution(case_record const& record);
  bool timed() const;

  run_info const& info_;
  std::uint64_t threads_, requests_; // of the job: what a row has room for
  h5::node group_;
  rank_rows rows_;
  std::vector<std::int64_t> ranks_; // present so far
};

} // namespace plateau
