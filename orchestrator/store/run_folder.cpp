// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/run_folder.hpp"

#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/codec.hpp"
#include "schemas/host.hpp"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace plateau {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 60;

std::string rank_name(std::int64_t rank, std::string const& rest) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05lld.", static_cast<long long>(rank));
  return name + rest;
}

std::string result_name(std::int64_t rank, std::int64_t attempt) {
  return rank_name(rank, (attempt > 1 ? "attempt-" + std::to_string(attempt) + "." : "") + "cbor");
}

// The rank and the attempt in the name of a raw result; nothing when it is none.
std::optional<std::pair<std::int64_t, std::int64_t>> rank_and_attempt(std::string const& name) {
  long long rank = -1, attempt = 1;
  if (std::sscanf(name.c_str(), "rank-%lld.attempt-%lld.cbor", &rank, &attempt) < 1) return std::nullopt;
  if (rank < 0 || name != result_name(rank, attempt)) return std::nullopt;
  return std::pair{std::int64_t{rank}, std::int64_t{attempt}};
}

} // namespace

fs::path run_folder::raw_result(case_id const& id, std::int64_t rank, std::int64_t attempt) const {
  return cases() / id.text() / result_name(rank, attempt);
}
fs::path run_folder::worker_log(std::int64_t rank) const { return logs() / rank_name(rank, "log"); }

std::string new_run_id(std::string_view job_name) {
  char digits[8];
  std::snprintf(digits, sizeof digits, "%04x", std::random_device{}() & 0xffffu);
  return utc_now("%Y%m%dT%H%M%SZ") + "-" + safe_for_a_file_name(job_name) + "-" + digits;
}

std::string safe_for_a_file_name(std::string_view text) {
  std::string safe;
  for (unsigned char const c : text.substr(0, longest_name))
    safe += std::isalnum(c) != 0 || c == '_' || c == '-' || (c == '.' && !safe.empty()) ? static_cast<char>(c) : '_';
  return safe.empty() ? "job" : safe;
}

void refuse_if_taken(fs::path const& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return;
  if (fs::is_directory(path, ignored) && fs::is_empty(path, ignored)) return;
  throw input_error(path.string() +
                    ": exists and is not an empty folder; a run never overwrites anything: choose another "
                    "folder with -o");
}

run_folder create_run_folder(fs::path const& path) {
  run_folder folder{path};
  refuse_if_taken(path);
  fs::create_directories(path);
  if (!fs::create_directory(folder.cases())) refuse_if_taken(path); // someone else took it between the look and now
  fs::create_directory(folder.logs());
  return folder;
}

run_folder open_run_folder(fs::path const& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw input_error(path.string() + ": does not exist; needs a run folder, as in runs/latest");
  run_folder folder{fs::is_directory(path, ignored) ? path : path.parent_path()};
  if (folder.path.empty()) folder.path = ".";
  if (!fs::exists(folder.run_json(), ignored))
    throw input_error(path.string() + ": is neither a run folder nor in one: there is no run.json");
  return folder;
}

counted_attempt attempt_that_counts(run_folder const& folder, case_id const& id, std::int64_t world) {
  return attempt_that_counts(std::span(&folder, 1), id, world);
}

counted_attempt attempt_that_counts(std::span<run_folder const> parts, case_id const& id, std::int64_t world) {
  std::map<std::int64_t, std::set<std::int64_t>> ranks_of; // by attempt
  std::error_code ignored;
  for (auto const& part : parts)
    for (auto const& entry : fs::directory_iterator(part.cases() / id.text(), ignored))
      if (auto const found = rank_and_attempt(entry.path().filename().string()); found && found->first < world)
        ranks_of[found->second].insert(found->first);
  counted_attempt best;
  for (auto const& [attempt, ranks] : ranks_of)
    if (std::ssize(ranks) >= best.ranks) best = {attempt, std::ssize(ranks)};
  return best;
}

void remove_older_results(run_folder const& folder, case_id const& id, std::int64_t rank, std::int64_t attempt) {
  std::error_code ignored;
  for (auto older = std::int64_t{1}; older < attempt; ++older) fs::remove(folder.raw_result(id, rank, older), ignored);
}

void write_run_info(run_folder const& folder, run_info const& info) {
  write_stored_json(folder.run_json(), encode(info));
}

run_info read_run_info(run_folder const& folder) { return read_stored<run_info>(folder.run_json(), run_info_format); }

void write_down(run_folder const& folder, run_info const& info) {
  write_durably(folder.job_json(), info.job.dump(2) + "\n");
  write_run_info(folder, info);
}

void write_outcome(run_folder const& folder, run_outcome const& outcome) {
  write_stored_json(folder.outcome_json(), encode(outcome));
}

std::optional<run_outcome> read_outcome(run_folder const& folder) {
  if (!fs::exists(folder.outcome_json())) return std::nullopt;
  return read_stored<run_outcome>(folder.outcome_json(), run_outcome_format);
}

void point_latest_at(run_folder const& folder) {
  auto const whole = fs::absolute(folder.path).lexically_normal();
  auto const target = whole.has_filename() ? whole : whole.parent_path(); // "runs/a/" ends in an empty name
  auto const link = target.parent_path() / "latest";
  auto const status = fs::symlink_status(link);
  if (fs::exists(status) && !fs::is_symlink(status)) return;
  auto const temporary = target.parent_path() / (".latest." + std::to_string(::getpid()));
  fs::remove(temporary);
  fs::create_symlink(target.filename(), temporary);
  fs::rename(temporary, link);
}

} // namespace plateau
