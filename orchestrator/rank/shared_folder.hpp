// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/store/folder_lock.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/case_id.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// The run folder as the ranks have it. Rank 0 makes it, or opens that of an earlier run, and holds its lock until it
/// ends. A rank that does not see what rank 0 wrote into it has a folder of the same path on another disk, for itself
/// or together with the other ranks of its host, and sends what it measured to rank 0.
class shared_folder {
public:
  explicit shared_folder(communicator& ranks) : ranks_(ranks) {}

  /// Makes the folder and finds out who shares it. A collective. Throws refused, on every rank, when one of them cannot
  /// have its folder, or would overwrite something.
  void make(std::optional<std::filesystem::path> const& path, bool named_by_its_run, std::string const& job_name);

  /// Opens the folder of an earlier run, in the same way. A rank that has a folder of its own takes up the one that it
  /// had, or makes one. From now on nobody else can change the run.
  void reopen(std::filesystem::path const& path);

  run_folder const& here() const { return folder_; } ///< this rank's; an empty path before there is one
  std::string const& run_id() const { return run_id_; }
  bool shares(int rank) const { return shares_[static_cast<std::size_t>(rank)]; } ///< it sees the folder of rank 0

  /// Writes what rank 0 has written down of the run into the other ranks' own folders, too, so that each of them is a
  /// run folder for itself. A collective. Throws refused, on every rank, when one of them cannot.
  void copy_to_others(run_info const& info);

  /// Brings to rank 0 what the ranks measured that do not share its folder: `mine` is this rank's raw result of that
  /// attempt, or nothing. A collective. Why it could not be kept there, or nothing: the same on every rank.
  std::string gather(case_id const& id, std::vector<std::uint8_t> const& mine, std::int64_t attempt);

  /// Takes away this rank's results of a case that are older than `attempt`, which has one of every rank.
  void drop_older(case_id const& id, std::int64_t attempt);

  /// The run is refused: takes away the folder, if this rank made it.
  void clean_up();

private:
  communicator& ranks_;
  run_folder folder_;
  std::string run_id_;
  bool made_ = false;
  std::vector<bool> shares_;        // by rank
  std::optional<folder_lock> lock_; // rank 0's

  json offer(run_folder folder);
  void settle(json const& offered, bool resumed);
  std::string take_shared() const;
  std::string take_own(std::string const& nonce, bool resumed);
};

} // namespace plateau
