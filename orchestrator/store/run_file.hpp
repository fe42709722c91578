// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/case_group.hpp"
#include "orchestrator/store/hdf5.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/codec.hpp"
#include "schemas/run_record.hpp"

#include <string_view>

namespace plateau {

inline constexpr format_version run_file_format{"plateau.run_file", 1, 0};

/// The name of the trailer (trailer.hpp) behind what HDF5 wrote. HDF5 itself reads no further than its own end.
inline constexpr std::string_view run_file_trailer = "PLRF";

/// Writes run.h5 as run.h5.partial and gives it its name when it is whole; one that is not finished is
/// removed. Everything throws h5::error or std::system_error.
class run_file {
public:
  /// The file of info's run; both outlive it.
  run_file(run_folder const& folder, run_info const& info, job const& run);
  run_file(run_file const&) = delete;
  run_file& operator=(run_file const&) = delete;
  ~run_file();

  /// The next case's group; finished before the next one begins.
  case_group begin(case_id const& id) { return {file_, info_, run_, id}; }

  /// Makes the file durable. `complete`: every rank has a result of every case.
  void finish(bool complete);

private:
  run_folder folder_;
  run_info const& info_;
  job const& run_;
  h5::node file_;
  bool finished_ = false;
};

} // namespace plateau
