// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/check_stored.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/store/check_run_file.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/job.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>

namespace plateau {

namespace {

namespace fs = std::filesystem;

std::string counted(std::size_t n, char const* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

// Files of one kind, each on its own: these throw input_error with the path and one sentence.

void check_job(fs::path const& path, check_report& report) {
  auto const run = parse_job(read_text(path), path.string());
  report.what = "a good job of " + counted(cases_of(run).size(), "case");
}

// A run.json, and the job in it.
std::pair<run_info, job> read_run(fs::path const& path) {
  auto info = read_stored<run_info>(path, run_info_format);
  auto run = parse_job(info.job.dump(), path.string());
  for (std::size_t i = 0; i < info.ranks.size(); ++i)
    if (info.ranks[i].rank != static_cast<std::int64_t>(i))
      throw format_error(path.string() + ": /ranks/" + std::to_string(i) + " is not rank " + std::to_string(i));
  return {std::move(info), std::move(run)};
}

void check_run_info(fs::path const& path, check_report& report) {
  auto const [info, run] = read_run(path);
  report.what = "what was known of a run at its start: " + counted(info.ranks.size(), "rank") + ", " +
                counted(cases_of(run).size(), "case");
}

void check_outcome(fs::path const& path, check_report& report) {
  auto const outcome = read_stored<run_outcome>(path, run_outcome_format);
  report.what = "how a run ended: exit code " + std::to_string(outcome.exit_code);
}

// Gives the run that it is of.
std::string check_summary(fs::path const& path, check_report& report) {
  auto const summary = read_stored_json(path, summary_format);
  for (auto const* key : {"status", "meta", "results", "cases", "missing", "run", "environment", "ranks"})
    if (!summary.contains(key)) throw format_error(path.string() + ": /" + key + ": missing");
  auto const run_id = summary["run"].find("run_id");
  if (run_id == summary["run"].end() || !run_id->is_string())
    throw format_error(path.string() + ": /run/run_id: missing");
  report.what = "a whole summary, of " + counted(summary["cases"].size(), "case");
  return run_id->get<std::string>();
}

void check_raw_result(fs::path const& path, check_report& report) {
  auto const result = read_raw_result(path);
  report.what = "a whole raw result: rank " + std::to_string(result.rank) + " of " + result.id.text() + ", " +
                std::string(name_of(result.status));
}

// Gives the run that it is of, if that can be told.
std::string check_h5(fs::path const& path, check_report& report) {
  auto const checked = check_run_file(path);
  report.what = "a whole run.h5";
  if (checked.bytes == run_file_bytes::unchecked) {
    report.what = "an HDF5 file, unchecked";
    report.remarks.push_back(path.string() +
                             ": unchecked: it has no checksum, as after another program wrote into it; " +
                             "plateau assemble writes it anew");
  }
  for (auto const& fault : checked.faults) report.faults.push_back(path.string() + ": " + fault);
  return checked.run_id;
}

// Runs one check; what it throws becomes a fault.
template <class Check>
void collect(check_report& report, Check&& check) {
  try {
    check();
  } catch (input_error const& e) {
    report.faults.emplace_back(e.what());
  }
}

/// The files of a run folder against each other.
class folder_check {
public:
  explicit folder_check(run_folder const& folder) : folder_(folder) {}

  check_report report() && {
    collect(report_, [&] { run_.emplace(read_run(folder_.run_json())); });
    collect(report_, [&] { read_outcome(folder_); });
    if (run_ && fs::exists(folder_.job_json())) collect(report_, [&] { check_copy_of_job(); });
    auto const there = check_raw_results();
    if (there_or_remarked(folder_.summary_json()))
      collect(report_, [&] { check_own(folder_.summary_json(), check_summary); });
    if (there_or_remarked(folder_.run_h5())) collect(report_, [&] { check_own(folder_.run_h5(), check_h5); });
    if (run_)
      report_.what = "a run of " + counted(run_->first.ranks.size(), "rank") + ", " + std::to_string(there) + " of " +
                     std::to_string(expected_.size()) + " results there, all whole";
    return std::move(report_);
  }

private:
  run_folder folder_;
  check_report report_;
  std::optional<std::pair<run_info, job>> run_;
  std::set<fs::path> expected_; // raw results of a first attempt, by the grid and the ranks

  void check_copy_of_job() {
    auto const copy = parse_job(read_text(folder_.job_json()), folder_.job_json().string());
    if (to_json(copy) != to_json(run_->second))
      throw format_error(folder_.job_json().string() + ": is not the job in run.json; it was damaged or edited");
  }

  // Returns of how many cases and ranks there is a whole one, of whichever attempt.
  std::size_t check_raw_results() {
    if (run_)
      for (auto const& id : cases_of(run_->second))
        for (auto const& rank : run_->first.ranks) expected_.insert(folder_.raw_result(id, rank.rank));
    auto const attempts = run_ ? most_attempts() : 0;
    std::set<fs::path> whole;
    for (auto const& path : raw_results_there())
      collect(report_, [&] {
        if (!run_) return void(read_raw_result(path));
        auto const result = read_result_of_run(path, run_->first, run_->second);
        auto const of_the_first = folder_.raw_result(result.id, result.rank);
        if (!expected_.contains(of_the_first) || result.attempt > attempts)
          throw format_error(path.string() + ": is of no case, rank or attempt of this run; it is not read");
        whole.insert(of_the_first);
      });
    return whole.size();
  }

  std::int64_t most_attempts() const {
    auto most = std::ssize(attempts_of(run_->first));
    for (auto const& source : run_->first.merged_from.value_or(std::vector<run_source>{}))
      most = std::max(most, std::ssize(source.attempts));
    return most;
  }

  std::vector<fs::path> raw_results_there() const {
    std::vector<fs::path> paths;
    std::error_code ignored;
    for (auto const& group : fs::directory_iterator(folder_.cases(), ignored))
      for (auto const& file : fs::directory_iterator(group.path(), ignored))
        if (file.path().extension() == ".cbor") paths.push_back(file.path());
    std::ranges::sort(paths);
    return paths;
  }

  bool there_or_remarked(fs::path const& path) {
    if (fs::exists(path)) return true;
    report_.remarks.push_back(path.string() + ": not there; plateau assemble builds it");
    return false;
  }

  void check_own(fs::path const& path, std::string (*check)(fs::path const&, check_report&)) {
    auto const run_id = check(path, report_);
    if (run_ && !run_id.empty() && run_id != run_->first.run_id)
      throw format_error(path.string() + ": is of run " + run_id + ", not of " + run_->first.run_id);
  }
};

// Which check a file gets.

using file_check = void (*)(fs::path const&, check_report&);

// A check without the run that it gives.
template <std::string (*Check)(fs::path const&, check_report&)>
void alone(fs::path const& path, check_report& report) {
  Check(path, report);
}

struct known_file {
  std::string_view name, extension; ///< one of them
  std::string_view schema;          ///< of a JSON file
  file_check check;
};

constexpr std::array known_files{
    known_file{"run.json", "", run_info_format.name, check_run_info},
    known_file{"outcome.json", "", run_outcome_format.name, check_outcome},
    known_file{"summary.json", "", summary_format.name, alone<check_summary>},
    known_file{"", ".cbor", "", check_raw_result},
    known_file{"", ".h5", "", alone<check_h5>},
};

// The name of the format that a JSON file says it is of; "" if it says none.
std::string schema_of(fs::path const& path) {
  auto const document = json::parse(read_file(path), nullptr, false);
  if (!document.is_object() || !document.contains("schema") || !document["schema"].is_string()) return "";
  auto const text = document["schema"].get<std::string>();
  return text.substr(0, text.find('/'));
}

file_check check_for(fs::path const& path) {
  for (auto const& known : known_files)
    if (path.filename() == known.name || (!known.extension.empty() && path.extension() == known.extension))
      return known.check;
  auto const schema = schema_of(path);
  for (auto const& known : known_files)
    if (!known.schema.empty() && schema == known.schema) return known.check;
  return check_job;
}

} // namespace

check_report check_stored(fs::path const& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return folder_check(open_run_folder(path)).report();
  check_report report;
  auto const check = check_for(path);
  collect(report, [&] { check(path, report); });
  return report;
}

} // namespace plateau
